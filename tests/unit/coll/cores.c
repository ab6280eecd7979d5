/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cores.c - which ranks are found to share CPUs while others idle. */
#include "coll/engine/cores.h"

#include "../tap.h"

enum { MOST = 8 };

/* "0 0 12": the CPUs of each rank, a digit each; "-": none is known. */
static size_t parse(const char *text, cpu_set_t *cpus)
{
    size_t n = 0;
    CPU_ZERO(&cpus[0]);
    for (; *text; text++)
        if (*text == ' ')
            CPU_ZERO(&cpus[++n]);
        else if (*text != '-')
            CPU_SET((size_t)(*text - '0'), &cpus[n]);
    return n + 1;
}

int main(void)
{
    static const struct {
        const char *name, *ranks, *granted;
        size_t limit, first, count, idle;
    } cases[] = {
        {"two on one of two CPUs", "0 0", "01", SIZE_MAX, 0, 2, 1},
        {"each its own", "0 1", "0123", SIZE_MAX, 0, 0, 0},
        {"not bound", "0123 0123", "0123", SIZE_MAX, 0, 0, 0},
        {"more ranks than CPUs, not bound", "01 01 01", "01", SIZE_MAX, 0, 0,
         0},
        {"more ranks than CPUs, on all of them", "0 1 0 1", "01", SIZE_MAX, 0,
         0, 0},
        {"more ranks than CPUs, on one of them", "0 0 0", "01", SIZE_MAX, 0, 3,
         1},
        {"the launcher has one CPU", "0 0", "0", SIZE_MAX, 0, 0, 0},
        {"the launcher has other CPUs than the ranks", "3 3", "01", SIZE_MAX, 0,
         2, 2},
        {"Slurm granted one CPU", "0 0", "0123", 1, 0, 0, 0},
        {"Slurm granted two", "2 2", "0123", 2, 0, 2, 1},
        {"three on two CPUs", "4 01 01 01", "01234", SIZE_MAX, 1, 3, 2},
        {"the worst of two groups", "0 0 1 1 1", "0123", SIZE_MAX, 2, 3, 2},
        {"overlap alone is none", "01 12", "0123", SIZE_MAX, 0, 0, 0},
        {"one is not known", "0 0 -", "0123", SIZE_MAX, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cpu_set_t cpus[MOST], granted;
        struct dt_cores_shared shared = {0};
        size_t n = parse(cases[i].ranks, cpus);
        parse(cases[i].granted, &granted);
        bool found =
            dt_cores_find_shared(cpus, n, &granted, cases[i].limit, &shared);
        ok(found == (cases[i].count > 0) && shared.first == cases[i].first &&
               shared.ranks == cases[i].count && shared.idle == cases[i].idle,
           "%s: %zu ranks, %zu idle", cases[i].name, shared.ranks, shared.idle);
    }
    return tap_done();
}
