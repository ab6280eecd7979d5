/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* early.c - messages that came before their receive. */
#include "tl/early.h"

#include <stdlib.h>

#include "tl/tl.h"

#define MIN_SHIFT 6

struct dt_early *dt_early_get(struct dt_early_pool *pool, uint64_t tag,
                              size_t len)
{
    const unsigned bins = sizeof(pool->bins) / sizeof(pool->bins[0]);
    unsigned bin = 0;
    while (bin < bins && len > (size_t)1 << (bin + MIN_SHIFT))
        bin++;
    if (bin == bins)
        return NULL;
    struct dt_early *early = pool->bins[bin];
    if (early)
        pool->bins[bin] = early->next;
    else
        early = malloc(sizeof(*early) + ((size_t)1 << (bin + MIN_SHIFT)));
    if (early)
        *early = (struct dt_early){.tag = tag, .len = len, .bin = bin};
    return early;
}

void dt_early_put(struct dt_early_pool *pool, struct dt_early *early)
{
    early->next = pool->bins[early->bin];
    pool->bins[early->bin] = early;
}

void dt_early_pool_free(struct dt_early_pool *pool)
{
    for (size_t i = 0; i < sizeof(pool->bins) / sizeof(pool->bins[0]); i++)
        while (pool->bins[i]) {
            struct dt_early *early = pool->bins[i];
            pool->bins[i] = early->next;
            free(early);
        }
}

void dt_early_append(struct dt_early_queue *queue, struct dt_early *early)
{
    early->next = NULL;
    if (queue->last)
        queue->last->next = early;
    else
        queue->first = early;
    queue->last = early;
}

struct dt_early *dt_early_take(struct dt_early_queue *queue, uint64_t tag)
{
    struct dt_early *previous = NULL, *early = queue->first;
    while (early && (early->tag ^ tag) & ~DT_TAG_NOTE) {
        previous = early;
        early = early->next;
    }
    if (!early)
        return NULL;
    if (previous)
        previous->next = early->next;
    else
        queue->first = early->next;
    if (queue->last == early)
        queue->last = previous;
    return early;
}
