/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* unexpected.c - messages that arrive before their receive is posted. */
#include "tl/shm/unexpected.h"

#include <stdlib.h>

#include "tl/tl.h"

#define MIN_SHIFT 6

struct dt_unexpected *dt_unexpected_get(struct dt_unexpected_pool *pool,
                                        uint64_t tag, size_t len)
{
    const unsigned bins = sizeof(pool->bins) / sizeof(pool->bins[0]);
    unsigned bin = 0;
    while (bin < bins && len > (size_t)1 << (bin + MIN_SHIFT))
        bin++;
    if (bin == bins)
        return NULL;
    struct dt_unexpected *unexpected = pool->bins[bin];
    if (unexpected)
        pool->bins[bin] = unexpected->next;
    else
        unexpected =
            malloc(sizeof(*unexpected) + ((size_t)1 << (bin + MIN_SHIFT)));
    if (unexpected)
        *unexpected =
            (struct dt_unexpected){.tag = tag, .len = len, .bin = bin};
    return unexpected;
}

void dt_unexpected_put(struct dt_unexpected_pool *pool,
                       struct dt_unexpected *unexpected)
{
    unexpected->next = pool->bins[unexpected->bin];
    pool->bins[unexpected->bin] = unexpected;
}

void dt_unexpected_free(struct dt_unexpected_pool *pool)
{
    for (size_t i = 0; i < sizeof(pool->bins) / sizeof(pool->bins[0]); i++)
        while (pool->bins[i]) {
            struct dt_unexpected *unexpected = pool->bins[i];
            pool->bins[i] = unexpected->next;
            free(unexpected);
        }
}

void dt_unexpected_append(struct dt_unexpected_queue *queue,
                          struct dt_unexpected *unexpected)
{
    unexpected->next = NULL;
    if (queue->last)
        queue->last->next = unexpected;
    else
        queue->first = unexpected;
    queue->last = unexpected;
}

struct dt_unexpected *dt_unexpected_take(struct dt_unexpected_queue *queue,
                                         uint64_t tag)
{
    struct dt_unexpected *previous = NULL, *unexpected = queue->first;
    while (unexpected && (unexpected->tag ^ tag) & ~DT_TAG_NOTICE) {
        previous = unexpected;
        unexpected = unexpected->next;
    }
    if (!unexpected)
        return NULL;
    if (previous)
        previous->next = unexpected->next;
    else
        queue->first = unexpected->next;
    if (queue->last == unexpected)
        queue->last = previous;
    return unexpected;
}
