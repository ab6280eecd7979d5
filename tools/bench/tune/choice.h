/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* choice.h - choose the way of collectives on GPU memory from measured times:
 * one for short ones and one for long ones. */
#ifndef DT_TOOLS_BENCH_CHOICE_H
#define DT_TOOLS_BENCH_CHOICE_H

#include <stddef.h>

#include "tune/tune.h"

/* The times of one size by each way, in us; 0: the way is not available. */
struct contest {
    size_t bytes;
    double us[DT_TUNE_WAYS];
};

/* The rule that loses least against the best way of each size. Sizes ascend and
 * count alike. libdt's own choice stays where nothing is gained, and there is
 * one way where two gain nothing: IPC, for which STAGED stands where IPC is not
 * available. */
struct dt_tune_rule choose(const struct contest *contest, size_t n);

#endif
