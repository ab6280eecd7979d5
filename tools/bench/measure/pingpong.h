/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pingpong.h - how long something small takes to the other side, in us. */
#ifndef DT_TOOLS_BENCH_PINGPONG_H
#define DT_TOOLS_BENCH_PINGPONG_H

#include "bench.h"

/* One way of 8 bytes between this rank and peer, which calls it, too; first is
 * true for one of them. The best of some milliseconds. */
dt_result_t pingpong(const struct job *job, int peer, bool first, double *us,
                     struct dt_error *err);

/* Collective. Between the first ranks of nodes 0 and 1, 2 and 3, ... at the
 * same time: that of the slowest pair. 0 where there is one node. */
dt_result_t pingpong_nodes(const struct job *job, double *us,
                           struct dt_error *err);

/* Collective. A flag in memory which the first two ranks of each node share,
 * without libdt: that of the slowest node, 0 if none has two ranks or memory
 * cannot be shared. */
dt_result_t pingpong_cores(const struct job *job, double *us,
                           struct dt_error *err);

#endif
