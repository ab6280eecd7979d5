/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sets.h - adding and removing process sets. */
#ifndef DT_GRAD_SETS_H
#define DT_GRAD_SETS_H

#include "grad/entry.h"

/* All ranks have asked for the set of this entry, or for its end: its number is
 * the answer of the work. Errors: those of dt_comm_create, and NO_MEMORY. */
dt_result_t dt_sets_add(struct dt_grad *grad, struct dt_entry *entry,
                        struct dt_error *err);
dt_result_t dt_sets_remove(struct dt_grad *grad, struct dt_entry *entry,
                           struct dt_error *err);

#endif
