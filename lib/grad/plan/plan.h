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
#ifndef DT_GRAD_PLAN_PLAN_H
#define DT_GRAD_PLAN_PLAN_H

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

/* Go on with the buckets. Errors: those of the collectives. */
dt_result_t dt_plan_progress(struct dt_grad_plan *plan, bool *moved,
                             struct dt_error *err);

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
