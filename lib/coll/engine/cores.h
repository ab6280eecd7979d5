/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cores.h - finds ranks that share CPUs while others of their node idle. */
#ifndef DT_COLL_ENGINE_CORES_H
#define DT_COLL_ENGINE_CORES_H

#include <sched.h>

#include "coll/engine/world.h"

/* Ranks of a node, which have the same CPUs and are more than those. */
struct dt_cores_shared {
    size_t first; /* index of one of them */
    size_t ranks; /* how many they are */
    size_t idle; /* CPUs that the ranks may use, and no rank of the node does */
};

/* Find those that have the fewest CPUs for each. cpus: what each of n ranks may
 * use; an empty set: not known. granted: all that the ranks could use, and at
 * most `limit` of them. False: there are none, or no CPU idles. */
bool dt_cores_find_shared(const cpu_set_t *cpus, size_t n,
                          const cpu_set_t *granted, size_t limit,
                          struct dt_cores_shared *shared);

/* The first rank of a node prints a line about such ranks of its node, if there
 * are any; once all ranks of the node are known to the transport. */
void dt_cores_report_shared(const struct dt_world *world);

#endif
