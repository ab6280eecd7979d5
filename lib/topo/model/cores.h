/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cores.h - the granted CPUs divided between tasks by where their GPUs are.
 * Pure, no allocation. */
#ifndef DT_TOPO_CORES_H
#define DT_TOPO_CORES_H

#include "dt_topo.h"

/* Set cpus and numas of task[0 .. request->ntasks-1], which were zero, from
 * their own GPUs, and add the notes FEW_CPUS and FAR_CPUS.
 *
 * GPUs near the same granted CPUs are a locality. Where it meets no other, its
 * cores are cut evenly and contiguously between the tasks that own one of its
 * GPUs, in order of tasks; with fewer cores than tasks, granted ones that are
 * near no GPU of a task are added, and if that is not enough, neighbours share
 * one.
 * Cores in several localities go, one to a task, to tasks that have few. Empty
 * only if neither the request nor the topology knows a CPU. */
void dt_cores_assign(const dt_place_request_t *request, dt_place_task_t *task);

#endif
