/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* early.h - messages that came before their receive, one queue per peer. */
#ifndef DT_TL_EARLY_H
#define DT_TL_EARLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_early {
    struct dt_early *next;
    uint64_t tag; /* as sent */
    size_t len, done;
    unsigned bin;
    char data[];
};

struct dt_early_queue {
    struct dt_early *first, *last;
};

/* Buffers by the power of two they hold, kept for reuse: the same traffic
 * again allocates nothing. */
struct dt_early_pool {
    struct dt_early *bins[48];
};

/* A buffer for len bytes; NULL: no memory. */
struct dt_early *dt_early_get(struct dt_early_pool *pool, uint64_t tag,
                              size_t len);
void dt_early_put(struct dt_early_pool *pool, struct dt_early *early);
void dt_early_pool_free(struct dt_early_pool *pool);

void dt_early_append(struct dt_early_queue *queue, struct dt_early *early);

/* Take the first with this tag, but for its note bit; NULL: none. */
struct dt_early *dt_early_take(struct dt_early_queue *queue, uint64_t tag);

#endif
