/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* quantized.h - a bucket whose gradients go in 8 bits per element. Each block
 * of a gradient belongs to a rank, which sums it:
 *
 *   alltoall    each rank sends each block to its owner
 *   allgather   each owner sends the sums of its blocks to all
 *
 * A piece, what one rank sends to one other, is u32 flag | records of
 * lib/grad/compress/int8.h. The flag is that of bucket.h; all ranks have all
 * flags after the alltoall. */
#ifndef DT_GRAD_PLAN_QUANTIZED_H
#define DT_GRAD_PLAN_QUANTIZED_H

#include "grad/state.h"

/* Make the memory for a bucket, whose gradients are known. Errors: NO_MEMORY.
 */
dt_result_t dt_quantized_make(struct dt_bucket *bucket, struct dt_error *err);

/* NULL is fine. */
void dt_quantized_free(struct dt_quantized *quantized);

/* Bytes that it holds, and that one step hands to collectives. */
size_t dt_quantized_held(const struct dt_quantized *quantized);
size_t dt_quantized_sent(const struct dt_quantized *quantized);

/* Write what is sent; if not `follow`, zeros with the flag. */
void dt_quantized_pack(struct dt_bucket *bucket, bool follow);

/* Start the alltoall. When it is complete, sum and start the allgather. Errors:
 * those of the collectives. */
dt_result_t dt_quantized_scatter(struct dt_bucket *bucket, dt_comm_t comm);
dt_result_t dt_quantized_gather(struct dt_bucket *bucket, dt_comm_t comm);

/* After the alltoall: could a rank not follow? */
bool dt_quantized_is_raised(const struct dt_quantized *quantized);

/* The allgather is complete: write the results, and keep the residuals. */
void dt_quantized_unpack(struct dt_bucket *bucket);

#endif
