/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nics.h - NICs divided between the GPUs of a node, and so between tasks.
 * Pure. */
#ifndef DT_TOPO_NICS_H
#define DT_TOPO_NICS_H

#include "dt_topo.h"

/* Set nic, nnics and gpu_nic of task[0 .. request->ntasks-1] from their own
 * GPUs. What a GPU gets depends on its node alone, not on the grant, so that
 * jobs that share a node do not use the same NIC:
 * CLOSEST: of k GPUs that tie on the same m NICs, the r-th gets the NICs r, r +
 * k, ... of them, m/k in number; with fewer NICs than GPUs NIC r modulo m. A
 * GPU leaves NICs that others are nearer to, as when its own is down, to them
 * unless all are such.
 * RAIL: GPU i of n has the NIC i*m/n of the m that carry RDMA; where that one
 * is down, the next that is not. A NIC that is down keeps its place, so that
 * the rails of different nodes stay the same. */
void dt_nics_assign(const dt_place_request_t *request, dt_place_task_t *task);

#endif
