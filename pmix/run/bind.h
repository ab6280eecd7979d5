/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bind.h - which CPUs each rank on this machine runs on. */
#ifndef DT_PMIX_BIND_H
#define DT_PMIX_BIND_H

#include <sched.h>
#include <stddef.h>

/* The CPUs that this process may use, the threads of a core side by side. */
struct dt_bind {
    size_t cpus, cores;
    short cpu[CPU_SETSIZE];
    short first[CPU_SETSIZE + 1]; /* of each core, an index of cpu[] */
};

/* Read the mask of this process, and the kernel's description of its cores in
 * /sys; a CPU that is not described counts as a core. cpus is at least 1. */
void dt_bind_open(struct dt_bind *bind);

/* An equal share for rank of ranks: whole cores in order of their numbers, or
 * threads if there are fewer cores than ranks. With fewer threads than ranks:
 * all of them, as two ranks that are bound to one CPU could not move. */
void dt_bind_share(const struct dt_bind *bind, size_t rank, size_t ranks,
                   cpu_set_t *set);

#endif
