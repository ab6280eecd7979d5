/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* begin.h - what all ranks of a set have started begins. */
#ifndef DT_GRAD_BEGIN_H
#define DT_GRAD_BEGIN_H

#include "grad/state.h"

/* After a round: begin, or fail, all entries of which nothing is missing any
 * more. Errors: those of what begins. */
dt_result_t dt_begin_all(struct dt_grad_set *set, struct dt_error *err);

#endif
