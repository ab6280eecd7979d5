/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pairs.h - the schedule of pairwise measurements, and which pairs are slow. */
#ifndef DT_TOOLS_BENCH_PAIRS_H
#define DT_TOOLS_BENCH_PAIRS_H

#include "dt.h"

/* The number of rounds in which each two of n players are measured once. All
 * pairs of a round are measured at the same time; with alone, a round has one
 * pair. */
int pairs_rounds(int n, bool alone);

/* The partner of player me in a round; -1: it has none. */
int pairs_partner(int n, bool alone, int round, int me);

/* Matrices [n * n] from row to column; the diagonal is not used. */
struct pairs {
    int n;
    double *us, *gbs;
    double usual_us, usual_gbs; /* typical values, of pairs_settle() */
};

/* Find the typical values: the median, or, with three players or fewer, the
 * better quartile, as one slow player makes most pairs slow. They are 0 for
 * n < 2. Returns false when there is no memory. */
bool pairs_settle(struct pairs *pairs);

/* slow: less than half the typical bandwidth; late: more than three times the
 * typical latency. */
bool pairs_slow(const struct pairs *pairs, int from, int to);
bool pairs_late(const struct pairs *pairs, int from, int to);

/* Is a player slow to, or from, or late to, all others? Never with two players:
 * then only the pair is known to be slow. */
bool pairs_slow_out(const struct pairs *pairs, int player);
bool pairs_slow_in(const struct pairs *pairs, int player);
bool pairs_late_all(const struct pairs *pairs, int player);

#endif
