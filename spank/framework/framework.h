/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* framework.h - --dt-rendezvous in slurmstepd: the processes of a framework get
 * the variables by which they find each other, and ports that dt-pmixd holds.
 * (The rendezvous in spank/server is that of the daemons.) */
#ifndef DT_SPANK_FRAMEWORK_H
#define DT_SPANK_FRAMEWORK_H

#include <stdio.h>

#include "spank_dt.h"

/* For the configuration of dt-pmixd: the ports that it is to hold. */
void dt_framework_configure(spank_t spank, const struct spank_dt *dt,
                            FILE *out);

/* In srun: what all nodes must know. */
void dt_framework_local(const struct spank_dt *dt);

/* Does something beside the tasks serve all nodes until the last rank ends? */
bool dt_framework_serves(const struct spank_dt *dt);

/* How many cores each task needs at least: dt_place_request_t.min_cores. */
uint32_t dt_framework_min_cores(const struct spank_dt *dt);

/* In a task: remove what the plugin has set in a step around this one. */
void dt_framework_forget(spank_t spank);

/* In a task, after that: set the variables; those that the user has set are
 * kept, and rank 0 prints a note. INVALID_ARG: the step does not fit the
 * framework; BOOTSTRAP: it has no dt-pmixd; PROC_FAILED: a service beside the
 * tasks has ended, and err is "", as the user has a line about it; SYSTEM,
 * NO_MEMORY, MISMATCH, TIMED_OUT. */
dt_result_t dt_framework_task_init(spank_t spank, const struct spank_dt *dt,
                                   struct dt_error *err);

#endif
