/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* step.h - the PMIx server of a step: whether it gets one of ours, and what
 * that is told, from Slurm's items and variables. In slurmstepd. */
#ifndef DT_SPANK_SERVER_H
#define DT_SPANK_SERVER_H

#include "spank_dt.h"

/* Does the step get a server of ours? */
bool dt_server_wanted(spank_t spank, const struct spank_dt *dt);

/* Start the daemon of this node, as user, and wait until it is ready.
 * UNSUPPORTED: a heterogeneous step. */
dt_result_t dt_server_start(spank_t spank, struct spank_dt *dt,
                            const struct dt_helper_user *user,
                            struct dt_error *err);

/* In a task: its variables of PMIx, where the server serves it; with
 * --dt-pmix=none, those of any server are removed. false: Slurm refused. */
bool dt_server_set_variables(spank_t spank, const struct spank_dt *dt,
                             uint32_t rank);

#endif
