/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* system.h - which devices, CPUs and memory this process may use, and binding
 * it to some of them. */
#ifndef DT_SPANK_SYSTEM_H
#define DT_SPANK_SYSTEM_H

#include <net/if.h>

#include "base/error.h"
#include "dt_topo.h"

/* A bit for each GPU of topo that the cgroup and the permissions let this
 * process open. A GPU whose device file is unknown or absent counts as one. No
 * device is opened. */
uint64_t dt_system_opens(const dt_topo_t *topo);

/* true if this process may read the file; not for "". */
bool dt_system_readable(const char *file);

/* The CPUs that this process may run on; none if that is not known. */
void dt_system_cpus(dt_cpuset_t *cpus);
/* Bind this process and its later children. SYSTEM: the kernel refused. */
dt_result_t dt_system_bind(const dt_cpuset_t *cpus, struct dt_error *err);

/* Prefer memory of these NUMA nodes (a set of indices of topo->numa), of those
 * that the cpuset allows; children inherit it. SYSTEM, NOT_FOUND: the policy is
 * unchanged. */
dt_result_t dt_system_prefer(const dt_topo_t *topo, const uint64_t *numas,
                             struct dt_error *err);

/* The interface of the route to that numeric address. false: unknown, or the
 * loopback. Sends nothing. */
bool dt_system_interface(const char *address, char name[IF_NAMESIZE]);

#endif
