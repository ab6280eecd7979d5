/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server.h - the PMIx server of a step in slurmstepd: whether the step gets
 * one, its configuration, and the variables by which tasks connect to it. */
#ifndef DT_SPANK_SERVER_H
#define DT_SPANK_SERVER_H

#include "spank_dt.h"

/* Does the step get dt-pmixd? */
bool dt_server_wanted(spank_t spank, const struct spank_dt *dt);

/* Start dt-pmixd of this node as user. Blocks until it is ready, DT_STEP_LIMIT
 * seconds and a little more at most. UNSUPPORTED: a heterogeneous step. */
dt_result_t dt_server_start(spank_t spank, struct spank_dt *dt,
                            const struct dt_helper_user *user,
                            struct dt_error *err);

/* In a task: set the variables of PMIx, if the step has dt-pmixd. With that or
 * --dt-pmix=none, those of another server are removed. false: Slurm refused. */
bool dt_server_set_variables(spank_t spank, const struct spank_dt *dt,
                             uint32_t rank);

#endif
