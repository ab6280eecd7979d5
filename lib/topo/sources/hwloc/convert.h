/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* convert.h - from a topology that hwloc has loaded to ours, whether hwloc read
 * it from this node or from a file. What comes from a file can be
 * inconsistent; nothing here relies on more than what hwloc itself checks. */
#ifndef DT_TOPO_HWLOC_CONVERT_H
#define DT_TOPO_HWLOC_CONVERT_H

#include <hwloc.h>

#include "topo/model/model.h"

/* Add the CPUs to an empty topo, then the NUMA nodes. CORRUPT; UNSUPPORTED:
 * more of something than a topology holds. */
dt_result_t dt_hwloc_add_cpus(hwloc_topology_t hwloc, dt_topo_t *topo,
                              struct dt_error *err);
dt_result_t dt_hwloc_add_numas(hwloc_topology_t hwloc, dt_topo_t *topo,
                               struct dt_error *err);

/* The CPUs in a set of hwloc that topo has. */
void dt_hwloc_cpus(const dt_topo_t *topo, hwloc_const_cpuset_t set,
                   dt_cpuset_t *cpus);

/* Then GPUs and NICs, where they are, and the PCI paths between them.
 * Overwrites the userdata of hwloc's objects. */
dt_result_t dt_hwloc_add_devices(hwloc_topology_t hwloc, dt_topo_t *topo,
                                 struct dt_error *err);

/* The GPU that a PCI or OS device stands for after dt_hwloc_add_devices(), as
 * an index of topo->gpu; -1 none. */
int dt_hwloc_gpu(hwloc_obj_t object);

/* Then topo->links from hwloc's distance matrices. */
void dt_hwloc_add_links(hwloc_topology_t hwloc, dt_topo_t *topo);

/* Last, which NUMA nodes are the memory of which GPU. */
void dt_hwloc_assign_gpu_memory(hwloc_topology_t hwloc, dt_topo_t *topo);

#endif
