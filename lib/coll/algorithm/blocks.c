/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* blocks.c - where the block of each rank is. */
#include "coll/algorithm/blocks.h"

#include <stdlib.h>

struct dt_block *dt_blocks(const struct dt_plan *plan, const size_t *counts,
                           const size_t *displs)
{
    size_t size = plan->layout->size, next = 0;
    size_t elem = dt_dtype_size(plan->shape->dtype);
    struct dt_block *blocks = calloc(size, sizeof(*blocks));
    if (!blocks)
        plan->sched->failed = true;
    for (size_t i = 0; blocks && i < size; i++) {
        size_t len = (counts ? counts[i] : plan->shape->count) * elem;
        blocks[i] = (struct dt_block){displs ? displs[i] * elem : next, len};
        next += len;
    }
    return blocks;
}

size_t dt_blocks_run(const struct dt_block *blocks, const size_t *ranks,
                     size_t i, size_t n, size_t *len)
{
    size_t first = blocks[ranks[i]].offset;
    *len = blocks[ranks[i]].len;
    for (i++; i < n && blocks[ranks[i]].offset == first + *len; i++)
        *len += blocks[ranks[i]].len;
    return i;
}
