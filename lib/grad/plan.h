/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.h - the gradients of one model: negotiated in the first step, and by
 * buckets in a fixed order from then on.
 *
 *   state       a gradient that is submitted      left by
 *   NEGOTIATES  is told of, as any operation      a whole step: STANDS
 *   STANDS      goes into its bucket              a bucket with a flag: BREAKS
 *   BREAKS      waits                             all is emptied: NEGOTIATES
 *
 * All ranks change the state at the same point: the first after the same round
 * of negotiation, the second after the same bucket. */
#ifndef DT_GRAD_PLAN_H
#define DT_GRAD_PLAN_H

#include "grad/entry.h"

/* All ranks of the set have asked for a plan, or for its end. */
dt_result_t dt_plan_begin(struct dt_grad_set *set, struct dt_entry *entry,
                          struct dt_error *err);
dt_result_t dt_plan_end(struct dt_grad_set *set, struct dt_entry *entry,
                        struct dt_error *err);

/* All ranks have submitted this gradient. Errors: NO_MEMORY. */
dt_result_t dt_plan_learn(struct dt_grad_set *set, const struct dt_entry *entry,
                          struct dt_error *err);

/* All ranks have ended this step: make the plan, if it was a whole one. */
dt_result_t dt_plan_step_over(struct dt_grad_set *set, struct dt_entry *entry,
                              struct dt_error *err);

/* A gradient is complete. The drive lock is held, the submit lock is not. */
void dt_gradient_end(struct dt_gradient *gradient, dt_result_t code,
                     const struct dt_error *err);

/* The plan was given up, and all that was under way is empty: what is in its
 * buckets is negotiated. */
void dt_plan_negotiate(struct dt_grad_plan *plan);

/* Fail all gradients that are under way. */
void dt_plan_fail(struct dt_grad_plan *plan, dt_result_t code,
                  const struct dt_error *err);

/* Make all plans stop, as this rank closes the engine. Blocks. */
void dt_plans_stop(struct dt_grad *grad);

/* Free the plans of a set, NULL: of all. If `together`, with their
 * communicators, which is collective. */
dt_result_t dt_plans_free(struct dt_grad *grad, const struct dt_grad_set *set,
                          bool together);

#endif
