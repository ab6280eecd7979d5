/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bench-pairs.c - dt-bench's tournament: each pair plays once, no rank has two
 * partners at a time; and slow pairs are found. */
#include <string.h>

#include "pairwise/pairs.h"
#include "../tap.h"

enum { MOST = 17 };

static void test_rounds(int n, bool alone)
{
    int met[MOST][MOST] = {{0}}, pairs_at_once = 0;
    bool mutual = true, once = true;
    for (int round = 0; round < pairs_rounds(n, alone); round++) {
        int busy = 0;
        for (int me = 0; me < n; me++) {
            int other = pairs_partner(n, alone, round, me);
            if (other < 0)
                continue;
            mutual &= other < n && other != me &&
                      pairs_partner(n, alone, round, other) == me;
            met[me][other]++;
            busy++;
        }
        pairs_at_once = busy / 2 > pairs_at_once ? busy / 2 : pairs_at_once;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            once &= met[i][j] == (i != j);
    ok(mutual && once &&
           pairs_at_once == (n < 2   ? 0
                             : alone ? 1
                                     : n / 2),
       "%d players%s: each meets each once", n, alone ? ", alone" : "");
}

/* ---- n players with links of 10 GB/s, 5 us ---- */

static double us[MOST * MOST], gbs[MOST * MOST];

static struct pairs even(int n)
{
    for (int i = 0; i < n * n; i++) {
        us[i] = 5 + i % 3;
        gbs[i] = 10 + i % 2;
    }
    return (struct pairs){.n = n, .us = us, .gbs = gbs};
}

static int count_slow(const struct pairs *pairs)
{
    int n = 0;
    for (int i = 0; i < pairs->n; i++)
        for (int j = 0; j < pairs->n; j++)
            n += i != j && pairs_slow(pairs, i, j);
    return n;
}

static int count_nodes(const struct pairs *pairs)
{
    int n = 0;
    for (int i = 0; i < pairs->n; i++)
        n += pairs_slow_out(pairs, i) + pairs_slow_in(pairs, i) +
             pairs_late_all(pairs, i);
    return n;
}

static void test_slow(int n)
{
    struct pairs pairs = even(n);
    pairs_settle(&pairs);
    ok(!count_slow(&pairs) && !count_nodes(&pairs), "%d: none is slow", n);
    gbs[1] = 2;
    pairs_settle(&pairs);
    ok(count_slow(&pairs) == 1 && pairs_slow(&pairs, 0, 1) &&
           !count_nodes(&pairs),
       "%d: one way from 0 to 1 is slow, no node", n);
    if (n < 3)
        return;
    pairs = even(n);
    for (int i = 0; i < n; i++)
        gbs[2 * n + i] = 1;
    pairs_settle(&pairs);
    ok(pairs_slow_out(&pairs, 2) && count_nodes(&pairs) == 1,
       "%d: 2 is slow to all", n);
    for (int i = 0; i < n; i++) {
        gbs[i * n + 2] = 1;
        us[i * n + 2] = us[2 * n + i] = 50;
    }
    pairs_settle(&pairs);
    ok(pairs_slow_out(&pairs, 2) && pairs_slow_in(&pairs, 2) &&
           pairs_late_all(&pairs, 2) && count_nodes(&pairs) == 3,
       "%d: 2 is slow to and from all, and late", n);
}

int main(void)
{
    for (int n = 0; n <= MOST; n++) {
        test_rounds(n, false);
        test_rounds(n, true);
    }
    for (int n = 2; n <= 6; n++)
        test_slow(n);
    return tap_done();
}
