/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stall.h - who waits for whom. Each stall_seconds, the engines of all ranks
 * tell each other what they wait for, whether their programs call anything or
 * not; and rank 0 says it on stderr when a rank has waited for that long. */
#ifndef DT_GRAD_STALL_H
#define DT_GRAD_STALL_H

#include "grad/state.h"

/* Collective over the world. Nothing is done if it is switched off. Errors:
 * NO_MEMORY, those of the collectives. */
dt_result_t dt_stall_open(struct dt_grad *grad, struct dt_error *err);

/* Tell and hear, when it is time. Errors: those of the collectives; TIMED_OUT
 * after stall_fatal. */
dt_result_t dt_stall_look(struct dt_grad *grad, double now,
                          struct dt_error *err);

/* If `together`, it is collective, and complete on all ranks on return. */
void dt_stall_close(struct dt_grad *grad, bool together);

#endif
