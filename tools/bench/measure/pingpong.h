/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pingpong.h - one-way latency between nodes and between cores, in us. */
#ifndef DT_TOOLS_BENCH_PINGPONG_H
#define DT_TOOLS_BENCH_PINGPONG_H

#include "bench.h"

/* The latency of 8 bytes between this rank and peer. Both call it, one of them
 * with first. The best of a few milliseconds. */
dt_result_t pingpong(const struct job *job, int peer, bool first, double *us,
                     struct dt_error *err);

/* Collective. Measured between the leaders of nodes 0 and 1, 2 and 3, ... at
 * the same time; the slowest pair counts. 0 where there is one node. */
dt_result_t pingpong_nodes(const struct job *job, double *us,
                           struct dt_error *err);

/* Collective. The latency of a flag in memory that the first two ranks of each
 * node share, without libdt; the slowest node counts. 0 if no node has two
 * ranks or memory cannot be shared. */
dt_result_t pingpong_cores(const struct job *job, double *us,
                           struct dt_error *err);

#endif
