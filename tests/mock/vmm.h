/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vmm.h - the mock driver's memory that is mapped by hand, among its files. */
#ifndef DT_MOCK_VMM_H
#define DT_MOCK_VMM_H

#include "mock.h"

#define MOCK_BLOCK ((size_t)2 << 20)

struct mock_multicast;

struct allocation {
    struct allocation *next;
    dt_cu_allocation number;
    int fd, device, handles;
    size_t size;
    struct mock_multicast *multicast; /* NULL: memory */
    int uses;                         /* its number, mappings, and bindings */
    bool released;
};

struct range {
    struct range *next;
    dt_cu_ptr start;
    size_t size;
    struct allocation *mapped;
    bool accessible; /* of a multicast object, which nobody can touch */
};

dt_cu_allocation mock_allocate(int fd, size_t size, int device, int handles,
                               struct mock_multicast *multicast);

/* Under the lock. */
struct allocation *mock_allocation(dt_cu_allocation number);
void mock_unuse(struct allocation *a);
const struct range *mock_range(dt_cu_ptr ptr); /* that has this byte */

/* ---- multicast.c ---- */

bool mock_has_multicast(void);
/* That of a descriptor; NULL: it is none. */
struct mock_multicast *mock_multicast_open(int fd);
void mock_multicast_free(struct mock_multicast *m);
size_t mock_multicast_size(const struct mock_multicast *m);
/* Have all devices been added; has this one? */
bool mock_multicast_full(const struct mock_multicast *m);
bool mock_multicast_has(const struct mock_multicast *m, int device);

#endif
