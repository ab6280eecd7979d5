/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* blocks.h - where the block of each rank is in a buffer that has one for
 * each, in bytes. */
#ifndef DT_COLL_ALGORITHM_BLOCKS_H
#define DT_COLL_ALGORITHM_BLOCKS_H

#include "coll/algorithm/algorithm.h"

struct dt_block {
    size_t offset, len;
};

/* size blocks, of counts (each of count where NULL) at displs (one behind the
 * other where NULL); to be freed. NULL when there is no memory, which the
 * schedule then knows, too. */
struct dt_block *dt_blocks(const struct dt_plan *plan, const size_t *counts,
                           const size_t *displs);

/* Blocks i .. the returned number - 1 of the ranks of a group, which has n of
 * them from i on, follow each other; their length goes to *len. */
size_t dt_blocks_run(const struct dt_block *blocks, const size_t *ranks,
                     size_t i, size_t n, size_t *len);

#endif
