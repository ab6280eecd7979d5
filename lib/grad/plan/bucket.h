/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bucket.h - gradients that go in one allreduce. Behind the elements of a
 * bucket is one more, a flag: 0, and 1 from a rank that cannot follow the plan,
 * which sends zeros with it. Where the sum is not 0, no rank uses the result.
 */
#ifndef DT_GRAD_PLAN_BUCKET_H
#define DT_GRAD_PLAN_BUCKET_H

#include "grad/state.h"

/* Cut n gradients, in this order, into buckets. Errors: NO_MEMORY. */
dt_result_t dt_buckets_make(struct dt_grad_plan *plan,
                            struct dt_gradient **order, int n,
                            struct dt_error *err);

void dt_buckets_free(struct dt_grad_plan *plan);

/* Is a gradient missing in this bucket, which has not arrived in this step, or
 * in one that goes before it? */
bool dt_buckets_lack(const struct dt_grad_plan *plan, int bucket);

/* Launch what is full, in order, and complete what has arrived. Errors: those
 * of the collectives. */
dt_result_t dt_buckets_progress(struct dt_grad_plan *plan, bool *moved,
                                struct dt_error *err);

#endif
