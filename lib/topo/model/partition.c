/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* partition.c - GPUs divided into groups that work well together.
 *
 * A first answer comes from a few starts that exchanges of pairs improve.
 * Branch and bound then looks for the first one in order that is as good or
 * better; on most machines the bound is met at once. */
#include "topo/model/partition.h"

#include <string.h>

#include "topo/model/score.h"

enum {
    MAX = DT_TOPO_MAX_GPUS,
    STARTS = 16,
    PASSES = 64,
    /* all branches of so many GPUs are looked at; of more only as many as
     * take about a millisecond */
    EXACT = 10,
    EFFORT = 400000,
};

struct search {
    const uint8_t *size; /* of the groups, larger first */
    size_t n, ngroups, nleft;
    int64_t weight[MAX][MAX];
    uint8_t partner[MAX][MAX]; /* the others, by what a pair with i weighs */
    uint8_t locality[MAX];
    int64_t ahead[MAX + 1]; /* localities that groups i, i+1, ... must span */
    /* places in groups i, i+1, ..., and those of them in larger groups than
     * the last, if there are two sizes */
    size_t places[MAX + 1], in_large[MAX + 1];
    size_t budget;       /* branches to look at */
    uint8_t branch[MAX]; /* the group of each GPU; ngroups: none */
    /* the best so far */
    int64_t value;
    uint8_t best[MAX];
};

static int64_t span(uint64_t localities)
{
    return __builtin_popcountll(localities) * DT_SCORE_LOCALITY;
}

/* ---- what is known before the search ---- */

static void weigh(struct search *s, const dt_topo_t *topo, const uint8_t *gpu)
{
    for (size_t i = 0; i < s->n; i++) {
        s->locality[i] = (uint8_t)i;
        for (size_t j = 0; j < i; j++) {
            s->weight[i][j] = s->weight[j][i] =
                dt_score_pair(topo, gpu[j], gpu[i]);
            if (s->locality[i] == i && dt_same_locality(topo, gpu[j], gpu[i]))
                s->locality[i] = s->locality[j];
        }
        s->weight[i][i] = 0;
    }
}

static void sort_down(int64_t *list, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int64_t x = list[i];
        size_t at = i;
        for (; at > 0 && list[at - 1] < x; at--)
            list[at] = list[at - 1];
        list[at] = x;
    }
}

/* A group of so many GPUs spans at least as many localities as the largest
 * ones that hold it. */
static void look_ahead(struct search *s)
{
    int64_t members[MAX] = {0};
    for (size_t i = 0; i < s->n; i++)
        members[s->locality[i]]++;
    sort_down(members, s->n);
    for (size_t g = s->ngroups; g-- > 0;) {
        int64_t room = s->size[g];
        s->ahead[g] = s->ahead[g + 1];
        s->places[g] = s->places[g + 1] + s->size[g];
        s->in_large[g] = s->in_large[g + 1];
        if (s->size[g] > s->size[s->ngroups - 1])
            s->in_large[g] += s->size[g];
        for (size_t l = 0; room > 0; l++, s->ahead[g] += DT_SCORE_LOCALITY)
            room -= members[l];
    }
}

static void rank_partners(struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t npartners = 0;
        for (size_t j = 0; j < s->n; j++) {
            if (j == i)
                continue;
            size_t at = npartners++;
            for (; at > 0 &&
                   s->weight[i][s->partner[i][at - 1]] < s->weight[i][j];
                 at--)
                s->partner[i][at] = s->partner[i][at - 1];
            s->partner[i][at] = (uint8_t)j;
        }
    }
}

/* ---- starts, and exchanges of pairs ---- */

/* GPUs in groups; those in none are in group ngroups, which weighs nothing. */
struct grouping {
    uint8_t group[MAX];
    int64_t pull[MAX][MAX];    /* pull[i][g]: of GPU i by those of group g */
    uint8_t members[MAX][MAX]; /* members[g][l]: of locality l in group g */
};

static void enter(const struct search *s, struct grouping *at, size_t i,
                  size_t g)
{
    at->group[i] = (uint8_t)g;
    if (g == s->ngroups)
        return;
    at->members[g][s->locality[i]]++;
    for (size_t j = 0; j < s->n; j++)
        at->pull[j][g] += s->weight[i][j];
}

static void leave(const struct search *s, struct grouping *at, size_t i)
{
    size_t g = at->group[i];
    if (g == s->ngroups)
        return;
    at->members[g][s->locality[i]]--;
    for (size_t j = 0; j < s->n; j++)
        at->pull[j][g] -= s->weight[i][j];
}

/* What group g gains when it gives a and takes b. */
static int64_t gain(const struct search *s, const struct grouping *at, size_t g,
                    size_t a, size_t b)
{
    if (g == s->ngroups)
        return 0;
    int64_t value = at->pull[b][g] - at->pull[a][g] - s->weight[a][b];
    size_t la = s->locality[a], lb = s->locality[b];
    if (la != lb)
        value += DT_SCORE_LOCALITY *
                 ((at->members[g][la] == 1) - (at->members[g][lb] == 0));
    return value;
}

static bool exchange(const struct search *s, struct grouping *at)
{
    bool better = false;
    for (size_t a = 0; a < s->n; a++)
        for (size_t b = a + 1; b < s->n; b++) {
            size_t ga = at->group[a], gb = at->group[b];
            if (ga == gb || gain(s, at, ga, a, b) + gain(s, at, gb, b, a) <= 0)
                continue;
            leave(s, at, a);
            leave(s, at, b);
            enter(s, at, a, gb);
            enter(s, at, b, ga);
            better = true;
        }
    return better;
}

static int64_t worth(const struct search *s, const struct grouping *at)
{
    int64_t twice = 0, value = 0;
    for (size_t i = 0; i < s->n; i++)
        if (at->group[i] < s->ngroups)
            twice += at->pull[i][at->group[i]];
    for (size_t g = 0; g < s->ngroups; g++)
        for (size_t l = 0; l < s->n; l++)
            value -= at->members[g][l] ? DT_SCORE_LOCALITY : 0;
    return value + twice / 2;
}

/* The one that group g would like most; the first one of an empty group. */
static size_t choose(const struct search *s, const struct grouping *at,
                     size_t g, bool empty)
{
    size_t best = s->n;
    int64_t most = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (at->group[i] != s->ngroups)
            continue;
        int64_t value =
            at->pull[i][g] -
            (at->members[g][s->locality[i]] ? 0 : DT_SCORE_LOCALITY);
        if (best == s->n || (!empty && value > most)) {
            best = i;
            most = value;
        }
    }
    return best;
}

/* In order, or each group around its first GPU and group 0 around start. */
static void start_from(const struct search *s, struct grouping *at,
                       bool in_order, size_t start)
{
    memset(at->members, 0, sizeof(at->members));
    for (size_t i = 0; i < s->n; i++) {
        memset(at->pull[i], 0, sizeof(at->pull[i]));
        at->group[i] = (uint8_t)s->ngroups;
    }
    for (size_t g = 0; g < s->ngroups; g++)
        for (size_t k = 0; k < s->size[g]; k++)
            enter(s, at, g + k ? choose(s, at, g, in_order || !k) : start, g);
}

static void keep(struct search *s, const struct grouping *at)
{
    int64_t value = worth(s, at);
    if (value <= s->value)
        return;
    s->value = value;
    memcpy(s->best, at->group, s->n);
}

static void try_starts(struct search *s)
{
    struct grouping at;
    size_t step = (s->n + STARTS - 1) / STARTS;
    for (size_t start = 0; start < s->n; start += step) {
        start_from(s, &at, false, start);
        for (size_t pass = 0; pass < PASSES && exchange(s, &at); pass++)
            ;
        keep(s, &at);
    }
}

/* ---- branch and bound ---- */

/* Where a branch has come to. */
struct branch {
    size_t group, have;  /* the group being filled, and how many are in it */
    size_t first;        /* of them; of the group before when there is none */
    uint64_t free, mine; /* GPUs in no group yet, and in this one */
    uint64_t localities; /* of those in this one */
    int64_t value;       /* of all pairs and localities in groups so far */
};

static size_t lowest(uint64_t set)
{
    return (size_t)__builtin_ctzll(set);
}

/* The heaviest pairs of GPU i with those of a set, small and large of them. */
static void best_pairs(const struct search *s, size_t i, uint64_t set,
                       size_t small, size_t large, int64_t sum[2])
{
    int64_t so_far = 0;
    sum[0] = 0;
    for (size_t p = 0, k = 0; p + 1 < s->n && k < large; p++) {
        size_t j = s->partner[i][p];
        if (!(set >> j & 1))
            continue;
        so_far += s->weight[i][j];
        if (++k == small)
            sum[0] = so_far;
    }
    sum[1] = so_far;
}

/* The sum of the n largest. */
static int64_t top(int64_t *list, size_t length, size_t n)
{
    int64_t sum = 0;
    if (n < length)
        sort_down(list, length);
    for (size_t i = 0; i < n && i < length; i++)
        sum += list[i];
    return sum;
}

/* Twice the most that pairs of GPUs in no group yet can add: each counts for
 * both its GPUs, each GPU gets the best partners there are, and the places in
 * groups go to those that like them best: all as if in a small group, and more
 * for those in a large one. */
static int64_t bound_free(const struct search *s, const struct branch *at)
{
    size_t small = s->size[s->ngroups - 1], large = s->size[0], n = 0;
    size_t places = s->places[at->group], in_large = s->in_large[at->group];
    places -= at->have;
    in_large -= in_large ? at->have : 0;
    int64_t value[MAX], more[MAX], sum[2];
    for (uint64_t left = at->free; left; left &= left - 1, n++) {
        size_t i = lowest(left);
        best_pairs(s, i, at->free | at->mine, small - 1,
                   in_large ? large - 1 : small - 1, sum);
        value[n] = sum[0];
        more[n] = sum[1] - sum[0];
    }
    return top(value, n, places) + top(more, n, in_large);
}

/* Twice what the branch can still come to. */
static int64_t bound(const struct search *s, const struct branch *at)
{
    int64_t value = 2 * (at->value - s->ahead[at->group + (at->have > 0)]);
    size_t open = s->size[at->group] - at->have;
    if (at->have) {
        int64_t least = s->ahead[at->group] - s->ahead[at->group + 1];
        if (least > span(at->localities))
            value -= 2 * (least - span(at->localities));
    }
    for (uint64_t left = at->mine; left; left &= left - 1) {
        int64_t sum[2];
        best_pairs(s, lowest(left), at->free, open, open, sum);
        value += sum[1];
    }
    return value + bound_free(s, at);
}

static void extend(struct search *s, struct branch at);

static void take(struct search *s, struct branch at, size_t i)
{
    uint64_t bit = (uint64_t)1 << i;
    uint64_t localities = at.localities | (uint64_t)1 << s->locality[i];
    for (uint64_t left = at.mine; left; left &= left - 1)
        at.value += s->weight[i][lowest(left)];
    at.value -= span(localities) - span(at.localities);
    at.localities = localities;
    at.first = at.have ? at.first : i;
    at.have++;
    at.free &= ~bit;
    at.mine |= bit;
    s->branch[i] = (uint8_t)at.group;
    extend(s, at);
    s->branch[i] = (uint8_t)s->ngroups;
}

/* Groups of one size come in order of their first GPUs, so what one of them
 * skips must find room in a smaller one or in none. */
static void begin_group(struct search *s, const struct branch *at)
{
    bool in_large = s->in_large[at->group] > 0;
    size_t room = s->nleft, from = 0;
    if (in_large)
        room += s->places[at->group] - s->in_large[at->group];
    if (at->group && s->size[at->group - 1] == s->size[at->group])
        from = at->first + 1;
    for (uint64_t left = at->free; left; left &= left - 1) {
        if (lowest(left) >= from)
            take(s, *at, lowest(left));
        if (room-- == 0)
            return;
    }
}

/* Branches come in order, and only a better one than the best counts: of equal
 * ones the first stays. */
static void extend(struct search *s, struct branch at)
{
    if (at.have == s->size[at.group]) {
        at.group++;
        at.have = 0;
        at.mine = at.localities = 0;
    }
    if (at.group == s->ngroups) {
        if (at.value > s->value) {
            s->value = at.value;
            memcpy(s->best, s->branch, s->n);
        }
        return;
    }
    if (!s->budget || bound(s, &at) <= 2 * s->value)
        return;
    s->budget--;
    if (!at.have) {
        begin_group(s, &at);
        return;
    }
    /* ascending inside a group: those above all it has */
    uint64_t above = ~(uint64_t)0 << (63 - __builtin_clzll(at.mine));
    for (uint64_t left = at.free & above; left; left &= left - 1)
        take(s, at, lowest(left));
}

/* From nothing. */
static struct branch root(const struct search *s)
{
    return (struct branch){.free = ~(uint64_t)0 >> (64 - s->n)};
}

/* The groups of one size in order of their first GPUs. */
static void order_groups(const struct search *s, uint8_t *group)
{
    uint8_t renamed[MAX];
    memset(renamed, DT_PARTITION_NONE, sizeof(renamed));
    for (size_t i = 0; i < s->n; i++) {
        size_t g = group[i];
        if (g >= s->ngroups) {
            group[i] = DT_PARTITION_NONE;
            continue;
        }
        if (renamed[g] == DT_PARTITION_NONE) {
            size_t to = 0;
            for (size_t h = 0; h < s->ngroups; h++)
                to += s->size[h] > s->size[g] ||
                      (s->size[h] == s->size[g] &&
                       renamed[h] != DT_PARTITION_NONE);
            renamed[g] = (uint8_t)to;
        }
        group[i] = renamed[g];
    }
}

void dt_partition(const dt_topo_t *topo, const uint8_t *gpu, size_t n,
                  const uint8_t *size, size_t ngroups,
                  uint8_t group[DT_TOPO_MAX_GPUS])
{
    struct search s = {.size = size, .n = n, .ngroups = ngroups, .nleft = n};
    for (size_t g = 0; g < ngroups; g++)
        s.nleft -= size[g];
    weigh(&s, topo, gpu);
    look_ahead(&s);
    rank_partners(&s);
    memset(s.branch, (int)ngroups, sizeof(s.branch));
    s.value = INT64_MIN;
    struct grouping in_order;
    start_from(&s, &in_order, true, 0);
    keep(&s, &in_order);
    /* in order is the first of all: nothing that is only as good beats it */
    struct branch nothing = root(&s);
    if (bound(&s, &nothing) > 2 * s.value) {
        try_starts(&s);
        s.value--; /* the first as good as this one is still to be found */
        s.budget = n <= EXACT ? SIZE_MAX : EFFORT / (n * n);
        extend(&s, nothing);
    }
    memcpy(group, s.best, n);
    order_groups(&s, group);
}
