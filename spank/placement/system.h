/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* system.h - what the operating system lets this process have, and putting it
 * there. */
#ifndef DT_SPANK_SYSTEM_H
#define DT_SPANK_SYSTEM_H

#include <net/if.h>

#include "base/error.h"
#include "dt_topo.h"

/* A bit for each GPU of topo that this process may open, as far as cgroup and
 * permissions go. One whose device file is not known, or not there, counts as
 * open. No device is touched. */
uint64_t dt_system_opens(const dt_topo_t *topo);

/* true if this process may read the file; not for "". */
bool dt_system_readable(const char *file);

/* The CPUs that this process may run on; none if that is not known. */
void dt_system_cpus(dt_cpuset_t *cpus);
/* Run there from now on, children too. SYSTEM: the kernel refused. */
dt_result_t dt_system_bind(const dt_cpuset_t *cpus, struct dt_error *err);

/* Prefer memory of these NUMA nodes, indices of topo->numa, as far as this
 * process may have it; children inherit that. SYSTEM, NOT_FOUND: left as it
 * was. */
dt_result_t dt_system_prefer(const dt_topo_t *topo, const uint64_t *numas,
                             struct dt_error *err);

/* The interface by which this node talks to the host of that numeric address.
 * false: unknown, or it is the loopback. Sends nothing. */
bool dt_system_interface(const char *address, char name[IF_NAMESIZE]);

#endif
