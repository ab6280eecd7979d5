/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.c - what one rank of coll.t does: `coll-ranks MODE [ARG ...]`,
 * under dt-fork or srun. Exits 0 if this rank saw what it should; rank 0 of
 * mode "all" prints a digest of sums of random numbers, which must not change
 * from run to run. */
#include "ranks.h"

static const struct mode modes[] = {
    {"all", mode_all, false},
    {"wrap", mode_wrap, false},
    {"requests", mode_requests, false},
    {"open", mode_open_end, false},
    {"notice", mode_notice, false},
    {"misuse", mode_misuse, false, misuse_before_init},
    {"check", mode_check, false},
    {"comms", mode_comms, false},
    {"create", mode_create, false},
    {"exhaust", mode_exhaust, false},
    {"threads", mode_threads, false},
    {"groups", mode_groups, false},
    {"progress", mode_progress, false},
    {"die", mode_die, true},
    {"stop", mode_stop, true},
    {"amid", mode_amid, true},
    {"lose-open", mode_lose_open, true},
    {"lose-busy", mode_lose_busy, true},
    {"disagree", mode_disagree, true},
    {NULL, NULL, false},
};

int main(int argc, char **argv)
{
    const struct mode *mode = begin_mode(modes, argc, argv);
    mode->fn(argc - 2, argv + 2);
    return end_mode(mode);
}
