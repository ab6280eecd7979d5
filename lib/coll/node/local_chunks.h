/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local_chunks.h - the allreduce of one node for all but short buffers: in
 * chunks of one block per rank, two rounds per chunk. In the first each rank
 * shows its part, in the second the result of its block. */
#ifndef DT_COLL_NODE_LOCAL_CHUNKS_H
#define DT_COLL_NODE_LOCAL_CHUNKS_H

#include "coll/node/local.h"
#include "exec/exec.h"
#include "tl/board.h"

#define DT_LOCAL_RANKS 64

/* Blocks of at most how many bytes. */
size_t dt_local_block_max(const struct dt_board *board);

uint64_t dt_local_chunks_rounds(const struct dt_board *board,
                                const struct dt_shape *shape);
void dt_local_chunks_begin(struct dt_local *local);
bool dt_local_chunks_progress(struct dt_local *local);

/* What the shape wants of these n inputs, count elements. */
void dt_local_fold(const struct dt_exec_out *out, const void *const *in,
                   size_t n, size_t count, const struct dt_shape *shape);

#endif
