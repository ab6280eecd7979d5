/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* choice.h - of the ways that collectives on GPU memory can go, by their times:
 * which one for short ones, and which for long ones. */
#ifndef DT_TOOLS_BENCH_CHOICE_H
#define DT_TOOLS_BENCH_CHOICE_H

#include <stddef.h>

/* The names are the words of DT_GPU_WAY. */
enum way { WAY_IPC, WAY_NCCL, WAY_STAGED, WAY_MULTICAST };
#define WAYS (WAY_MULTICAST + 1)
const char *way_name(enum way way);

/* One size, and the time each way took; 0: it is not to be had. */
struct contest {
    size_t bytes;
    double us[WAYS];
};

struct choice {
    enum way brief, lengthy;
    size_t upto; /* bytes: so far brief; 0 where both are one */
};

/* Sizes ascend, and count alike, each by what is lost to the best of it. What
 * libdt does by itself stays where nothing is gained, and two ways are taken
 * where one loses more: IPC, for which STAGED stands where it is not to be
 * had. */
struct choice choose(const struct contest *contest, size_t n);

#endif
