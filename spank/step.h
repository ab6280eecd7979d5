/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* step.h - the PMIx server of a step: whether it gets one of ours, and what
 * that is told, from Slurm's items and variables. In slurmstepd. */
#ifndef DT_SPANK_STEP_H
#define DT_SPANK_STEP_H

#include "spank_dt.h"

/* Does the step get a server of ours? */
bool dt_step_is_ours(spank_t spank, const struct spank_dt *dt);

/* Start the daemon of this node, as user, and wait until it is ready.
 * UNSUPPORTED: a heterogeneous step. */
dt_result_t dt_step_start(spank_t spank, struct spank_dt *dt,
                          const struct dt_helper_user *user,
                          struct dt_error *err);

#endif
