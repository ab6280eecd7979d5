/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* set.h - process sets: a communicator for what is told and one for data, each
 * on the members alone. */
#ifndef DT_GRAD_SET_H
#define DT_GRAD_SET_H

#include "grad/entry.h"

/* Make set 0. Collective over the world, blocks. */
dt_result_t dt_set_open_world(struct dt_grad *grad, struct dt_error *err);

/* The set by its number, of which this rank is a member. Errors: INVALID_ARG.
 */
dt_result_t dt_set_mine(struct dt_grad *grad, int id, struct dt_grad_set **set,
                        struct dt_error *err);

/* All ranks have asked for the set of this entry, or for its end: the number is
 * the work's answer. Errors: those of dt_comm_create, and NO_MEMORY. */
dt_result_t dt_set_begin(struct dt_grad *grad, struct dt_entry *entry,
                         struct dt_error *err);
dt_result_t dt_set_end(struct dt_grad *grad, struct dt_entry *entry,
                       struct dt_error *err);

/* Free it. If `together`, its communicators are freed, too, which is collective
 * over the set. */
dt_result_t dt_set_free(struct dt_grad_set *set, bool together);

#endif
