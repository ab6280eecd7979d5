/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pairs.h - each with each other: who meets whom when, and who is slow. */
#ifndef DT_TOOLS_BENCH_PAIRS_H
#define DT_TOOLS_BENCH_PAIRS_H

#include "dt.h"

/* Rounds in which n players meet each other once: in each of them all at the
 * same time, or, alone, one pair. */
int pairs_rounds(int n, bool alone);

/* Whom player me meets in a round, -1: nobody. */
int pairs_partner(int n, bool alone, int round, int me);

/* From row to column, [n * n]; the diagonal means nothing. */
struct pairs {
    int n;
    double *us, *gbs;
    double usual_us, usual_gbs; /* set by pairs_settle() */
};

/* Find what is usual: the median; of three or fewer what is better than that
 * of most, as one of them that is slow makes most pairs slow. 0 for n < 2.
 * False without memory. */
bool pairs_settle(struct pairs *pairs);

/* Not half as fast as usual, or more than three times as long on the way? */
bool pairs_slow(const struct pairs *pairs, int from, int to);
bool pairs_late(const struct pairs *pairs, int from, int to);

/* Is a player slow to all others, from all others? Of two it is the pair. */
bool pairs_slow_out(const struct pairs *pairs, int player);
bool pairs_slow_in(const struct pairs *pairs, int player);
bool pairs_late_all(const struct pairs *pairs, int player);

#endif
