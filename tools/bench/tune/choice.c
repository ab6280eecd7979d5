/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* choice.c - one way for short collectives, and one for long ones. */
#include "tune/choice.h"

#include <stdbool.h>

/* Less than that is no difference. */
#define NOISE 0.05

const char *way_name(enum way way)
{
    static const char *const names[WAYS] = {"ipc", "nccl", "staged",
                                            "multicast"};
    return names[way];
}

/* How much longer than the best of its size; 0: as good as that. */
static double loss(const struct contest *contest, enum way way)
{
    double best = contest->us[way];
    for (enum way w = 0; w < WAYS; w++)
        if (contest->us[w] > 0 && contest->us[w] < best)
            best = contest->us[w];
    double more = best > 0 ? contest->us[way] / best - 1 : 0;
    return more > NOISE ? more : 0;
}

/* If the first k sizes go one way and the others another. */
static double total(const struct contest *contest, size_t n, size_t k,
                    enum way brief, enum way lengthy)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += loss(&contest[i], i < k ? brief : lengthy);
    return sum;
}

/* One way: k is 0. */
static struct choice best_of(const struct contest *contest, size_t n,
                             const bool had[WAYS], bool two, double *least)
{
    struct choice best = {WAY_IPC, WAY_IPC, 0};
    *least = -1;
    for (enum way a = 0; a < WAYS; a++)
        for (enum way b = 0; b < WAYS; b++)
            for (size_t k = two; k < (two ? n : 1); k++) {
                if (!had[a] || !had[b] || (a == b) == two)
                    continue;
                double cost = total(contest, n, k, a, b);
                if (*least >= 0 && cost >= *least)
                    continue;
                *least = cost;
                best = (struct choice){a, b, two ? contest[k - 1].bytes : 0};
            }
    return best;
}

struct choice choose(const struct contest *contest, size_t n)
{
    struct choice best = {WAY_IPC, WAY_IPC, 0};
    bool had[WAYS] = {false};
    for (enum way w = 0; n && w < WAYS; w++)
        had[w] = contest[0].us[w] > 0;
    const enum way own = had[WAY_IPC] ? WAY_IPC : WAY_STAGED;
    if (!had[own])
        return best;
    best.brief = best.lengthy = own;
    double cost = total(contest, n, 0, own, own);
    for (int two = 0; two < 2; two++) {
        double other;
        struct choice choice = best_of(contest, n, had, two, &other);
        if (other >= 0 && other < cost) {
            best = choice;
            cost = other;
        }
    }
    if (own == WAY_STAGED && best.brief == WAY_STAGED)
        best.brief = WAY_IPC;
    if (own == WAY_STAGED && best.lengthy == WAY_STAGED)
        best.lengthy = WAY_IPC;
    return best;
}
