/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* losses.c - nodes are lost, a run loads, and then the others are lost: what
 * the first loss took, parity included, was written again after that load. */
#include "../support/crash-job.h"
#include "../support/job.h"
#include "../../tap.h"

static const struct crash_plan plans[] = {
    {"rs:2+2", 4, 4, false, false, false, "rs:2+2", 2},
    {"xor:4, in the background", 4, 4, true, false, false, "xor:4", 1},
    {"partner", 4, 4, false, false, false, "partner", 1},
};

static void test_losses(const struct crash_plan *plan)
{
    int version = 0;
    bool good = true;
    crash_begin(plan);
    crash_save();
    crash_forget_memory();
    for (int turn = 0; turn < 6 && good; turn++) {
        crash_lose(((1u << plan->bears) - 1) << turn * plan->bears % 4);
        good = crash_loads(CRASH_VERSIONS, CRASH_VERSIONS, &version);
        if (!good)
            diag("turn %d", turn);
    }
    ok(good && crash_goes_on(),
       "%s: what each load finds survives the next "
       "loss",
       plan->what);
    crash_end();
}

int main(void)
{
    crash_setup();
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        test_losses(&plans[i]);
    return tap_done();
}
