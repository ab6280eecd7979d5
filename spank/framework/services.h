/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* services.h - what a framework runs beside the tasks of a node, seen from a
 * task: pmix/daemon/services.h is the process that runs it. */
#ifndef DT_SPANK_SERVICES_H
#define DT_SPANK_SERVICES_H

#include "spank_dt.h"
#include "framework/variables.h"

/* In a task, after its variables are set: the first task of the node starts the
 * services of the chosen frameworks, but for one whose address the user has
 * set; then each task waits until they are ready, DT_TIMEOUT seconds at most.
 * SYSTEM, NO_MEMORY, TIMED_OUT; PROC_FAILED: a service has ended, and err is
 * "", as the user has a line about it. */
dt_result_t dt_services_task_init(spank_t spank, const struct spank_dt *dt,
                                  const struct dt_frameworks *chosen,
                                  const struct dt_framework_task *task,
                                  struct dt_error *err);

#endif
