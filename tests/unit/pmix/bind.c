/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bind.c - the CPUs of the ranks of dt-run, on machines that are made up. */
#include <stdio.h>
#include <string.h>

#include "../tap.h"
#include "run/bind.h"

/* Cores of two threads, numbered as Linux does; the last may have one. */
static struct dt_bind machine(size_t cores, size_t cpus)
{
    struct dt_bind bind = {.cores = cores};
    for (size_t core = 0; core < cores; core++) {
        bind.first[core] = (short)bind.cpus;
        bind.cpu[bind.cpus++] = (short)core;
        if (core + cores < cpus)
            bind.cpu[bind.cpus++] = (short)(core + cores);
    }
    bind.first[cores] = (short)bind.cpus;
    return bind;
}

/* "0,4 1,5": the CPUs of all ranks */
static void is_shared(const struct dt_bind *bind, size_t ranks,
                      const char *want, const char *name)
{
    char text[512] = "";
    size_t used = 0;
    for (size_t rank = 0; rank < ranks; rank++) {
        cpu_set_t set;
        const char *before = rank ? " " : "";
        dt_bind_share(bind, rank, ranks, &set);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &set)) {
                used += (size_t)snprintf(text + used, sizeof(text) - used,
                                         "%s%d", before, cpu);
                before = ",";
            }
    }
    if (!ok(strcmp(text, want) == 0, "%s", name))
        diag("got \"%s\", wanted \"%s\"", text, want);
}

int main(void)
{
    struct dt_bind four = machine(4, 8), odd = machine(3, 5), own;
    is_shared(&four, 1, "0,1,2,3,4,5,6,7", "one rank has all");
    is_shared(&four, 2, "0,1,4,5 2,3,6,7", "two ranks: whole cores");
    is_shared(&four, 3, "0,4 1,5 2,3,6,7", "three: none is left");
    is_shared(&four, 4, "0,4 1,5 2,6 3,7", "four: a core each");
    is_shared(&four, 8, "0 4 1 5 2 6 3 7", "eight: a thread each");
    is_shared(&four, 5, "0 1,4 5 2,6 3,7", "five: threads");
    is_shared(&odd, 3, "0,3 1,4 2", "a core of one thread");
    is_shared(&odd, 6,
              "0,1,2,3,4 0,1,2,3,4 0,1,2,3,4 0,1,2,3,4 0,1,2,3,4 "
              "0,1,2,3,4",
              "more ranks than threads: all of them");

    cpu_set_t mask, all;
    CPU_ZERO(&all);
    sched_getaffinity(0, sizeof(mask), &mask);
    dt_bind_open(&own);
    for (size_t rank = 0; rank < own.cores; rank++) {
        cpu_set_t set, both;
        dt_bind_share(&own, rank, own.cores, &set);
        CPU_AND(&both, &set, &all);
        if (CPU_COUNT(&both) || !CPU_COUNT(&set))
            break;
        CPU_OR(&all, &all, &set);
    }
    ok(CPU_EQUAL(&all, &mask) && own.cpus == (size_t)CPU_COUNT(&mask) &&
           own.cores >= 1 && own.cores <= own.cpus,
       "the cores of this machine are those of the mask, each once");
    return tap_done();
}
