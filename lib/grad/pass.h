/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pass.h - one pass over all that is under way: grad->pass and grad->busy. When
 * anything fails, the engine has failed, and all work ends with that. */
#ifndef DT_GRAD_PASS_H
#define DT_GRAD_PASS_H

#include "grad/state.h"

bool dt_pass(struct dt_grad *grad);
bool dt_pass_is_busy(const struct dt_grad *grad);

#endif
