/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* choice.c - one way for short collectives, and one for long ones. */
#include "tune/choice.h"

#include <stdbool.h>

/* Differences below this share are noise. */
#define NOISE 0.05

/* How much slower than the best way of this size; 0: as fast. */
static double loss(const struct contest *contest, enum dt_tune_way way)
{
    double best = contest->us[way];
    for (enum dt_tune_way w = 0; w < DT_TUNE_WAYS; w++)
        if (contest->us[w] > 0 && contest->us[w] < best)
            best = contest->us[w];
    double more = best > 0 ? contest->us[way] / best - 1 : 0;
    return more > NOISE ? more : 0;
}

/* The total loss if the first k sizes go one way and the others another. */
static double total(const struct contest *contest, size_t n, size_t k,
                    enum dt_tune_way brief, enum dt_tune_way lengthy)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += loss(&contest[i], i < k ? brief : lengthy);
    return sum;
}

/* The best rule of two ways, or of one (k is 0). */
static struct dt_tune_rule best_of(const struct contest *contest, size_t n,
                                   const bool had[DT_TUNE_WAYS], bool two,
                                   double *least)
{
    struct dt_tune_rule best = {0, DT_TUNE_IPC, DT_TUNE_IPC};
    *least = -1;
    for (enum dt_tune_way a = 0; a < DT_TUNE_WAYS; a++)
        for (enum dt_tune_way b = 0; b < DT_TUNE_WAYS; b++)
            for (size_t k = two; k < (two ? n : 1); k++) {
                if (!had[a] || !had[b] || (a == b) == two)
                    continue;
                double cost = total(contest, n, k, a, b);
                if (*least >= 0 && cost >= *least)
                    continue;
                *least = cost;
                best = (struct dt_tune_rule){two ? contest[k - 1].bytes : 0,
                                             (int32_t)a, (int32_t)b};
            }
    return best;
}

struct dt_tune_rule choose(const struct contest *contest, size_t n)
{
    struct dt_tune_rule best = {0, DT_TUNE_IPC, DT_TUNE_IPC};
    bool had[DT_TUNE_WAYS] = {false};
    for (enum dt_tune_way w = 0; n && w < DT_TUNE_WAYS; w++)
        had[w] = contest[0].us[w] > 0;
    const enum dt_tune_way own =
        had[DT_TUNE_IPC] ? DT_TUNE_IPC : DT_TUNE_STAGED;
    if (!had[own])
        return best;
    best.brief = best.lengthy = own;
    double cost = total(contest, n, 0, own, own);
    for (int two = 0; two < 2; two++) {
        double other;
        struct dt_tune_rule choice = best_of(contest, n, had, two, &other);
        if (other >= 0 && other < cost) {
            best = choice;
            cost = other;
        }
    }
    if (own == DT_TUNE_STAGED && best.brief == DT_TUNE_STAGED)
        best.brief = DT_TUNE_IPC;
    if (own == DT_TUNE_STAGED && best.lengthy == DT_TUNE_STAGED)
        best.lengthy = DT_TUNE_IPC;
    return best;
}
