/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gradient.h - one tensor of a plan: under way in a bucket, or as negotiated
 * work. */
#ifndef DT_GRAD_PLAN_GRADIENT_H
#define DT_GRAD_PLAN_GRADIENT_H

#include "grad/state.h"

/* A gradient is complete; err may be NULL on success. The drive lock is held,
 * the submit lock is not. */
void dt_gradient_end(struct dt_gradient *gradient, dt_result_t code,
                     const struct dt_error *err);

/* Let the other ranks know that it was submitted. The submit lock is held. */
void dt_gradient_negotiate(struct dt_gradient *gradient);

/* The gradient whose negotiated form this is. */
struct dt_gradient *dt_gradient_of(struct dt_grad_work *work);

/* on_end of that work. */
void dt_gradient_work_end(struct dt_grad_work *work);

#endif
