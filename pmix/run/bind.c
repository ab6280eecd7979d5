/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bind.c - which CPUs each rank on this machine runs on.
 *
 * Without it, two ranks often stay on the core on which they were forked: each
 * sleeps while it waits for the other, so Linux never sees two that are busy.
 * The cores are read from /sys and not by libdt_topo, which would start hwloc
 * and NVML for what is one small file per CPU. */
#include "run/bind.h"

#include <stdio.h>

/* The lowest thread of the CPU's core. */
static int core_of(int cpu)
{
    char path[96];
    int first = -1;
    snprintf(path, sizeof(path),
             "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    FILE *file = fopen(path, "re");
    if (!file)
        return cpu;
    char text[16];
    if (fgets(text, sizeof(text), file))
        for (const char *at = text; *at >= '0' && *at <= '9'; at++)
            first = (first < 0 ? 0 : first * 10) + (*at - '0');
    fclose(file);
    return first < 0 || first > cpu ? cpu : first;
}

void dt_bind_open(struct dt_bind *bind)
{
    cpu_set_t set;
    int core[CPU_SETSIZE];
    *bind = (struct dt_bind){0};
    if (sched_getaffinity(0, sizeof(set), &set))
        CPU_ZERO(&set);
    if (!CPU_COUNT(&set))
        CPU_SET(0, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        core[cpu] = CPU_ISSET(cpu, &set) ? core_of(cpu) : -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (core[cpu] < 0)
            continue;
        bind->first[bind->cores++] = (short)bind->cpus;
        for (int twin = cpu, mine = core[cpu]; twin < CPU_SETSIZE; twin++)
            if (core[twin] == mine) {
                bind->cpu[bind->cpus++] = (short)twin;
                core[twin] = -1;
            }
    }
    bind->first[bind->cores] = (short)bind->cpus;
}

void dt_bind_share(const struct dt_bind *bind, size_t rank, size_t ranks,
                   cpu_set_t *set)
{
    size_t from = 0, end = bind->cpus;
    if (ranks <= bind->cores) {
        from = (size_t)bind->first[rank * bind->cores / ranks];
        end = (size_t)bind->first[(rank + 1) * bind->cores / ranks];
    } else if (ranks <= bind->cpus) {
        from = rank * bind->cpus / ranks;
        end = (rank + 1) * bind->cpus / ranks;
    }
    CPU_ZERO(set);
    for (size_t i = from; i < end; i++)
        CPU_SET(bind->cpu[i], set);
}
