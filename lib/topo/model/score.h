/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* score.h - how good a set of GPUs is, in one number: more is better, and the
 * numbers of disjoint sets may be added. Pure. */
#ifndef DT_TOPO_SCORE_H
#define DT_TOPO_SCORE_H

#include "dt_topo.h"

/* Of 64 GPUs: the sum of links is below 2^28, of path classes below 2^14, of
 * localities below 2^7, of pairs below 2^11. */
#define DT_SCORE_LINK     ((int64_t)1 << 32)
#define DT_SCORE_PCI      ((int64_t)1 << 18)
#define DT_SCORE_LOCALITY ((int64_t)1 << 11)
#define DT_SCORE_FAR      ((int64_t)1)

/* The path class over PCI between two devices, UNKNOWN as SYS. */
uint32_t dt_score_pci(const dt_topo_t *topo, size_t a, size_t b);

/* What the pair of GPUs a and b adds to a set that both are in. A set is worth
 * the sum of its pairs less LOCALITY times its localities. */
int64_t dt_score_pair(const dt_topo_t *topo, size_t a, size_t b);

/* Are two GPUs near the same CPUs, or in the same NUMA node where their CPUs
 * are not known? */
bool dt_same_locality(const dt_topo_t *topo, size_t a, size_t b);

#endif
