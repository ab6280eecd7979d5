/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bench-choice.c - dt-bench's choice between the ways of GPU memory: the
 * fastest, but not for noise, and cut where that pays. */
#include <stdio.h>
#include <string.h>

#include "tune/choice.h"
#include "../tap.h"

enum { MOST = 6 };

static const struct {
    const char *name, *want;
    double us[MOST][DT_TUNE_WAYS]; /* ipc, nccl, staged; 1 KiB, 4 KiB, ... */
} cases[] = {
    {"the fastest of all", "nccl", {{9, 5, 30}, {10, 6, 40}, {90, 50, 300}}},
    {"what is there already, for noise",
     "ipc",
     {{10, 9.8, 30}, {10, 10.2, 30}, {100, 96, 300}}},
    {"short ones",
     "ipc 4096 nccl",
     {{5, 20, 30}, {6, 20, 30}, {30, 20, 50}, {200, 90, 300}}},
    {"long ones", "nccl 1024 ipc", {{9, 5, 30}, {5, 9, 30}, {50, 80, 300}}},
    {"the last one alone",
     "ipc 16384 nccl",
     {{5, 20, 30}, {6, 20, 30}, {30, 40, 50}, {100, 80, 300}}},
    {"three ways, two of them",
     "nccl 1024 staged",
     {{10, 5, 30}, {90, 70, 30}, {900, 700, 90}}},
    {"one exception is not followed",
     "ipc",
     {{5, 9, 30}, {9, 8, 30}, {50, 90, 300}}},
    {"without NCCL", "ipc", {{5, 0, 30}, {9, 0, 30}, {50, 0, 300}}},
    {"without ipc: libdt finds the host by itself",
     "ipc 1024 nccl",
     {{0, 9, 5}, {0, 9, 12}, {0, 90, 300}}},
    {"the same, all", "ipc", {{0, 9, 5}, {0, 12, 9}}},
    {"the host is faster", "staged", {{9, 0, 5}, {12, 0, 9}}},
    {"one size", "nccl", {{9, 5, 30}}},
    {"no size", "ipc", {{0}}},
};

static void test_case(size_t which)
{
    struct contest contest[MOST];
    char got[64];
    size_t n = 0;
    for (size_t bytes = 1024; n < MOST; n++, bytes *= 4) {
        const double *us = cases[which].us[n];
        if (us[DT_TUNE_STAGED] <= 0)
            break;
        contest[n].bytes = bytes;
        memcpy(contest[n].us, us, sizeof(contest[n].us));
    }
    struct dt_tune_rule c = choose(contest, n);
    if (c.brief == c.lengthy)
        snprintf(got, sizeof(got), "%s", dt_tune_way_name(c.brief));
    else
        snprintf(got, sizeof(got), "%s %zu %s", dt_tune_way_name(c.brief),
                 c.upto, dt_tune_way_name(c.lengthy));
    ok(!strcmp(got, cases[which].want), "%s: %s (expected %s)",
       cases[which].name, got, cases[which].want);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        test_case(i);
    return tap_done();
}
