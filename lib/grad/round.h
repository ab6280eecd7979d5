/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* round.h - rounds of negotiation. A rank takes part in the next one when it
 * has something to tell, or has told of work that is not complete; a rank with
 * neither keeps nobody waiting, as what others wait for is then its program.
 * Where ranks wait for each other's programs, and a round brings nothing new,
 * they leave longer and longer pauses between rounds. */
#ifndef DT_GRAD_ROUND_H
#define DT_GRAD_ROUND_H

#include "grad/state.h"

/* Begin a round if there is a reason to, and go on with the one under way.
 * Errors: those of the collectives, and NO_MEMORY, VERSION. */
dt_result_t dt_round_progress(struct dt_grad_set *set, bool *moved,
                              struct dt_error *err);

#endif
