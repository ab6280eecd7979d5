/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* partition.h - GPUs divided into groups that work well together. Pure, no
 * allocation. */
#ifndef DT_TOPO_PARTITION_H
#define DT_TOPO_PARTITION_H

#include "dt_topo.h"

#define DT_PARTITION_NONE UINT8_MAX

/* Divide gpu[0 .. n-1], ascending indices of topo->gpu, into ngroups groups of
 * size[0] >= ... >= size[ngroups-1] GPUs each, at least 1, of at most two
 * different sizes and together at most n: group[i] is that of gpu[i], or NONE.
 * The best by the sum of dt_place_score() over the groups. Ties: the fewest SYS
 * pairs across packages, then the first in order of GPUs: group 0 has the
 * lowest it can, then group 1, and so on.
 *
 * Exact for up to 10 GPUs, and for more where the search ends within its budget
 * (about a millisecond); else the best that greedy starts, exchanges of pairs
 * and a part of the search have found. */
void dt_partition(const dt_topo_t *topo, const uint8_t *gpu, size_t n,
                  const uint8_t *size, size_t ngroups,
                  uint8_t group[DT_TOPO_MAX_GPUS]);

#endif
