/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* convert.h - from a topology that hwloc has loaded to ours, whether hwloc read
 * it from this node or from a file. What comes from a file can be
 * inconsistent; nothing here relies on more than what hwloc itself checks. */
#ifndef DT_TOPO_HWLOC_CONVERT_H
#define DT_TOPO_HWLOC_CONVERT_H

#include <hwloc.h>

#include "topo/model/model.h"

/* Fill the empty topo and finish it. CORRUPT; UNSUPPORTED: more of something
 * than a topology holds. The userdata of hwloc's objects is overwritten. */
dt_result_t dt_hwloc_convert(hwloc_topology_t hwloc, dt_topo_t *topo,
                             struct dt_error *err);

/* The CPUs in a set of hwloc that topo has. */
void dt_hwloc_cpus(const dt_topo_t *topo, hwloc_const_cpuset_t set,
                   dt_cpuset_t *cpus);

/* The bus id that an info attribute of an object names; false if none does. */
bool dt_hwloc_bus_info(hwloc_obj_t object, char bus[24]);

/* Add GPUs and NICs, where they are, and the PCI paths between them; CPUs and
 * NUMA nodes are in topo already. */
dt_result_t dt_hwloc_devices(hwloc_topology_t hwloc, dt_topo_t *topo,
                             struct dt_error *err);

/* The GPU that a PCI or OS device stands for after dt_hwloc_devices(), as an
 * index of topo->gpu; -1 none. */
int dt_hwloc_gpu(hwloc_obj_t object);

/* Fill topo->links from hwloc's distance matrices, after dt_hwloc_devices(). */
void dt_hwloc_links(hwloc_topology_t hwloc, dt_topo_t *topo);

#endif
