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

/* A set that is in the engine. Errors: INVALID_ARG. */
dt_result_t dt_set_get(struct dt_grad *grad, int id, struct dt_grad_set **set,
                       struct dt_error *err);

/* Make one of these ranks, ascending; put it into the engine's list; make its
 * communicators, which is collective over it and blocks. */
dt_result_t dt_set_make(struct dt_grad *grad, int id, const int64_t *ranks,
                        int n, struct dt_grad_set **set, struct dt_error *err);
void dt_set_enlist(struct dt_grad *grad, struct dt_grad_set *set);
dt_result_t dt_set_connect(struct dt_grad *grad, struct dt_grad_set *set,
                           struct dt_error *err);

/* Free it. If `together`, its communicators are freed, too, which is collective
 * over the set. */
dt_result_t dt_set_free(struct dt_grad_set *set, bool together);

#endif
