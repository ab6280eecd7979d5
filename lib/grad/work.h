/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* work.h - what this rank has started: from the call until it is forgotten. */
#ifndef DT_GRAD_WORK_H
#define DT_GRAD_WORK_H

#include "grad/state.h"

/* Make work without items. A copy of name is taken. Errors: NO_MEMORY. */
dt_result_t dt_work_create(struct dt_grad_set *set, enum dt_work_kind kind,
                           const char *name, struct dt_grad_work **work,
                           struct dt_error *err);

void dt_work_destroy(struct dt_grad_work *work);

/* As dt_grad_free. */
void dt_work_release(struct dt_grad_work *work);

/* All operations that were not freed, when the engine ends. */
void dt_work_destroy_all(struct dt_grad *grad);

/* Enter its name, so that it cannot be started a second time, and tell of it.
 * If numbered, its name is DT_WORK_NUMBERED, and becomes the next number.
 * Errors: INVALID_ARG where the name is under way here; what has broken the
 * engine. */
#define DT_WORK_NUMBERED "unnamed.18446744073709551615"
dt_result_t dt_work_enter(struct dt_grad_work *work, bool numbered,
                          struct dt_error *err);

/* Let the other ranks know of it in the next round. The submit lock is held. */
void dt_work_tell(struct dt_grad_work *work);

/* It is complete, with this result; err may be NULL. It may be freed by this.
 * The drive lock is held, and the submit lock is not. */
void dt_work_end(struct dt_grad_work *work, dt_result_t code,
                 const struct dt_error *err);

/* How it ended, as dt_grad_test says. */
dt_result_t dt_work_result(struct dt_grad_work *work, struct dt_error *err);

/* Is it complete? For dt_grad_progress_await. */
bool dt_work_is_over(void *work);

/* Tell of it, wait for it, and destroy it; *number is its answer, which may be
 * NULL. No lock is held. */
dt_result_t dt_work_finish(struct dt_grad_work *work, int *number,
                           struct dt_error *err);

#endif
