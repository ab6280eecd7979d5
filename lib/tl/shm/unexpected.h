/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* unexpected.h - messages that arrive before their receive is posted, per peer.
 */
#ifndef DT_TL_SHM_UNEXPECTED_H
#define DT_TL_SHM_UNEXPECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_unexpected {
    struct dt_unexpected *next;
    uint64_t tag; /* as sent */
    size_t len, done;
    unsigned bin;
    char data[];
};

struct dt_unexpected_queue {
    struct dt_unexpected *first, *last;
};

/* Free buffers by the power of two of their size: repeated traffic allocates
 * nothing. */
struct dt_unexpected_pool {
    struct dt_unexpected *bins[48];
};

/* A buffer for len bytes; NULL: no memory. */
struct dt_unexpected *dt_unexpected_get(struct dt_unexpected_pool *pool,
                                        uint64_t tag, size_t len);
void dt_unexpected_put(struct dt_unexpected_pool *pool,
                       struct dt_unexpected *unexpected);
void dt_unexpected_free(struct dt_unexpected_pool *pool);

void dt_unexpected_append(struct dt_unexpected_queue *queue,
                          struct dt_unexpected *unexpected);

/* Remove the first with this tag, whatever its notice bit; NULL: none. */
struct dt_unexpected *dt_unexpected_take(struct dt_unexpected_queue *queue,
                                         uint64_t tag);

#endif
