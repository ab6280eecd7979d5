/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* run.h - operations that all ranks have started, one collective each. They
 * begin in the same order on all ranks, and several are under way at a time. */
#ifndef DT_GRAD_RUN_H
#define DT_GRAD_RUN_H

#include "grad/entry.h"

/* Add the operations of an entry to those that are to be done. The entry's work
 * is ended when all of them are. Errors: NO_MEMORY. */
dt_result_t dt_runs_add(struct dt_grad_set *set, struct dt_entry *entry,
                        struct dt_error *err);

/* Begin, continue and complete. *moved is set when anything was. Errors: those
 * of the collectives. */
dt_result_t dt_runs_progress(struct dt_grad *grad, bool *moved,
                             struct dt_error *err);

/* The name of one that was begun before that time and has not ended, or NULL.
 */
const char *dt_runs_late(struct dt_grad *grad, double before);

/* Forget all of them, as the engine has failed; their work is ended. */
void dt_runs_fail(struct dt_grad *grad, dt_result_t code,
                  const struct dt_error *err);

#endif
