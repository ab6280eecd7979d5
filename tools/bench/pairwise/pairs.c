/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pairs.c - the schedule of pairwise measurements, and which pairs are slow. */
#include "pairwise/pairs.h"

#include <stdlib.h>

/* ---- rounds, by the circle method of round-robin tournaments ----
 *
 * With an odd number m of players, i and j are paired in round r when
 * i + j = r modulo m. The one with 2 i = r has no partner but player m, if
 * there are m + 1 players. */

int pairs_rounds(int n, bool alone)
{
    if (n < 2)
        return 0;
    return alone ? n * (n - 1) / 2 : n - 1 + n % 2;
}

static int partner_alone(int n, int round, int me)
{
    for (int first = 0; first < n; first++) {
        int others = n - 1 - first;
        if (round < others) {
            int second = first + 1 + round;
            return me == first ? second : me == second ? first : -1;
        }
        round -= others;
    }
    return -1;
}

int pairs_partner(int n, bool alone, int round, int me)
{
    int m = n - 1 + n % 2, partner;
    if (alone)
        return partner_alone(n, round, me);
    if (me == m)
        return round % 2 ? (round + m) / 2 : round / 2;
    partner = (round - me + m) % m;
    if (partner == me)
        partner = m;
    return partner < n ? partner : -1;
}

/* ---- typical values ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sort all values off the diagonal; returns how many there are. */
static size_t sort(double *sorted, const double *value, int n)
{
    size_t count = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (i != j)
                sorted[count++] = value[i * n + j];
    qsort(sorted, count, sizeof(*sorted), compare);
    return count;
}

bool pairs_settle(struct pairs *pairs)
{
    int n = pairs->n;
    pairs->usual_us = pairs->usual_gbs = 0;
    if (n < 2)
        return true;
    double *sorted = calloc((size_t)n * (size_t)n, sizeof(*sorted));
    if (!sorted)
        return false;
    size_t count = sort(sorted, pairs->us, n);
    pairs->usual_us = sorted[(count - 1) / (n > 3 ? 2 : 4)];
    sort(sorted, pairs->gbs, n);
    pairs->usual_gbs = sorted[n > 3 ? count / 2 : count * 3 / 4];
    free(sorted);
    return true;
}

/* ---- outliers ---- */

bool pairs_slow(const struct pairs *pairs, int from, int to)
{
    return pairs->gbs[from * pairs->n + to] < pairs->usual_gbs / 2;
}

bool pairs_late(const struct pairs *pairs, int from, int to)
{
    return pairs->us[from * pairs->n + to] > pairs->usual_us * 3;
}

bool pairs_slow_out(const struct pairs *pairs, int player)
{
    for (int other = 0; other < pairs->n; other++)
        if (other != player && !pairs_slow(pairs, player, other))
            return false;
    return pairs->n > 2;
}

bool pairs_slow_in(const struct pairs *pairs, int player)
{
    for (int other = 0; other < pairs->n; other++)
        if (other != player && !pairs_slow(pairs, other, player))
            return false;
    return pairs->n > 2;
}

bool pairs_late_all(const struct pairs *pairs, int player)
{
    for (int other = 0; other < pairs->n; other++)
        if (other != player && !pairs_late(pairs, player, other))
            return false;
    return pairs->n > 2;
}
