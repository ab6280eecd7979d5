/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gradient.h - one tensor of a plan: under way in a bucket, or as negotiated
 * work. */
#ifndef DT_GRAD_PLAN_GRADIENT_H
#define DT_GRAD_PLAN_GRADIENT_H

#include "grad/compress/int8.h"
#include "grad/state.h"

/* A gradient is complete; err may be NULL on success. The drive lock is held,
 * the submit lock is not. */
void dt_gradient_end(struct dt_gradient *gradient, dt_result_t code,
                     const struct dt_error *err);

/* Block b of a gradient that goes as I8, and the number in the set of the rank
 * that sums it in a plan; it keeps what is lost in the sum, however the
 * gradient goes. */
struct dt_int8_block dt_gradient_block(const struct dt_gradient *gradient,
                                       size_t b);
int dt_gradient_owner(const struct dt_gradient *gradient, size_t b);

/* The sum of block b has arrived: write it to the gradient's output. mine: what
 * this rank had sent; error: what is lost in the sum, NULL where another rank
 * keeps it. */
void dt_gradient_end_block(struct dt_gradient *gradient, size_t b,
                           const unsigned char *mine, const unsigned char *sum,
                           const float *error);

/* Such a gradient without a plan, with the same bits: bytes of what a rank
 * gives to an allgather; write them; all ranks' have arrived. */
size_t dt_gradient_bytes(const struct dt_item_type *type);
void dt_gradient_pack(const struct dt_gradient *gradient, unsigned char *mine);
void dt_gradient_unpack(struct dt_gradient *gradient, const unsigned char *all);

/* Let the other ranks know that it was submitted. The submit lock is held. */
void dt_gradient_negotiate(struct dt_gradient *gradient);

/* The gradient whose negotiated form this is. */
struct dt_gradient *dt_gradient_of(struct dt_grad_work *work);

/* on_end of that work. */
void dt_gradient_work_end(struct dt_grad_work *work);

#endif
