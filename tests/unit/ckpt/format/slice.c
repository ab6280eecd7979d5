/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* slice.c - boxes in an array, against looking at every element. */
#include "ckpt/format/slice.h"

#include <stdlib.h>
#include <string.h>

#include "../../tap.h"

static uint64_t seed = 1;

static int64_t below(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

struct box {
    int64_t at[5], extent[5];
};

static void random_box(struct box *box, int ndim, const int64_t *shape)
{
    for (int d = 0; d < ndim; d++) {
        box->at[d] = below(shape[d]);
        box->extent[d] = below(32) ? 1 + below(shape[d] - box->at[d]) : 0;
        if (below(3) == 0) { /* all of it is what programs do most */
            box->at[d] = 0;
            box->extent[d] = shape[d];
        }
    }
}

/* The coordinates of element i of the array. */
static void coordinates(size_t i, int ndim, const int64_t *shape, int64_t *at)
{
    for (int d = ndim; d-- > 0; i /= (size_t)shape[d])
        at[d] = (int64_t)(i % (size_t)shape[d]);
}

/* Its index in the box, or SIZE_MAX. */
static size_t index_in(const struct box *box, int ndim, const int64_t *at)
{
    size_t index = 0;
    for (int d = 0; d < ndim; d++) {
        if (at[d] < box->at[d] || at[d] >= box->at[d] + box->extent[d])
            return SIZE_MAX;
        index = index * (size_t)box->extent[d] + (size_t)(at[d] - box->at[d]);
    }
    return index;
}

struct seen {
    size_t pairs[2048][2], count, runs;
    size_t last_from, last_to; /* where the last run ended */
    bool joinable, falling;
};

static bool see(size_t from, size_t to, size_t n, void *arg)
{
    struct seen *seen = arg;
    seen->joinable |=
        seen->runs > 0 && from == seen->last_from && to == seen->last_to;
    seen->falling |= seen->runs > 0 && to < seen->last_to;
    for (size_t i = 0; i < n && seen->count < 2048; i++) {
        seen->pairs[seen->count][0] = from + i;
        seen->pairs[seen->count++][1] = to + i;
    }
    seen->last_from = from + n;
    seen->last_to = to + n;
    seen->runs++;
    return true;
}

static void test_runs(void)
{
    static struct seen seen;
    int wrong = 0, joinable = 0, falling = 0, empty = 0, scalars = 0;
    for (int round = 0; round < 20000; round++) {
        int ndim = (int)below(6);
        int64_t shape[5], at[5];
        size_t total = 1, expected = 0;
        struct box a, b;
        for (int d = 0; d < ndim; d++)
            total *= (size_t)(shape[d] = 1 + below(4));
        random_box(&a, ndim, shape);
        random_box(&b, ndim, shape);
        memset(&seen, 0, sizeof(seen));
        dt_slice_runs(&(struct dt_slice){ndim, a.at, a.extent},
                      &(struct dt_slice){ndim, b.at, b.extent}, see, &seen);
        for (size_t i = 0; i < total; i++) {
            coordinates(i, ndim, shape, at);
            size_t from = index_in(&a, ndim, at), to = index_in(&b, ndim, at);
            if (from == SIZE_MAX || to == SIZE_MAX)
                continue;
            wrong += expected >= seen.count ||
                     seen.pairs[expected][0] != from ||
                     seen.pairs[expected][1] != to;
            expected++;
        }
        wrong += expected != seen.count;
        joinable += seen.joinable;
        falling += seen.falling;
        empty += expected == 0;
        scalars += ndim == 0;
    }
    ok(wrong == 0, "20000 pairs of boxes: the runs are all elements of both, "
                   "in order");
    ok(joinable == 0, "no two runs could be one");
    ok(falling == 0, "they rise");
    ok(empty > 100 && scalars > 100, "%d were disjoint, %d scalars", empty,
       scalars);
}

static bool stop(size_t from, size_t to, size_t n, void *arg)
{
    (void)from, (void)to, (void)n;
    return ++*(int *)arg < 3;
}

static void test_stop(void)
{
    int calls = 0;
    struct dt_slice whole = {2, (int64_t[]){0, 0}, (int64_t[]){9, 9}};
    struct dt_slice column = {2, (int64_t[]){0, 4}, (int64_t[]){9, 1}};
    ok(!dt_slice_runs(&whole, &column, stop, &calls) && calls == 3,
       "walking stops when the callback returns false");
    ok(dt_slice_count(&whole) == 81 &&
           dt_slice_count(&(struct dt_slice){0, NULL, NULL}) == 1,
       "a box without dimensions is one element");
}

static void test_check(void)
{
    static const int64_t shape[] = {4, INT64_MAX};
    static const struct {
        int64_t at[2], extent[2];
        bool good;
    } cases[] = {
        {{0, 0}, {4, INT64_MAX}, true},
        {{4, 0}, {0, 1}, true},
        {{3, INT64_MAX}, {1, 0}, true},
        {{0, 0}, {5, 1}, false},
        {{1, 0}, {4, 1}, false},
        {{5, 0}, {0, 1}, false},
        {{-1, 0}, {2, 1}, false},
        {{1, 0}, {-1, 1}, false},
        {{0, 2}, {1, INT64_MAX}, false},
        {{0, INT64_MAX}, {1, INT64_MAX}, false},
        {{0, INT64_MIN}, {1, INT64_MAX}, false},
        {{0, 0}, {1, INT64_MIN}, false},
    };
    struct dt_error err = {0};
    int wrong = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        wrong +=
            (dt_slice_check(&(struct dt_slice){2, cases[i].at, cases[i].extent},
                            shape, &err) == DT_SUCCESS) != cases[i].good;
    ok(wrong == 0, "what is not inside is refused: %s", err.text);
}

/* ---- overlap ---- */

static bool overlap_brute(const struct dt_slice *box, size_t n)
{
    int64_t at[5], extent[5];
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (dt_slice_common(&box[i], &box[k], at, extent))
                return true;
    return false;
}

static void test_overlap(void)
{
    int wrong = 0, overlaps = 0, untrue = 0;
    for (int round = 0; round < 20000; round++) {
        int ndim = (int)below(4);
        size_t n = (size_t)below(8), a = 0, b = 0;
        int64_t shape[5] = {9, 9, 9}, at[5], extent[5];
        struct box box[8];
        struct dt_slice slice[8];
        for (size_t i = 0; i < n; i++) {
            random_box(&box[i], ndim, shape);
            for (int d = 0; d < ndim; d++)
                if (box[i].extent[d] > 3 && below(4))
                    box[i].extent[d] = 3;
            slice[i] = (struct dt_slice){ndim, box[i].at, box[i].extent};
        }
        bool there = overlap_brute(slice, n);
        dt_result_t rc = dt_slice_overlap(slice, n, &a, &b);
        wrong += rc != (there ? DT_ERR_INVALID_ARG : DT_SUCCESS);
        if (rc == DT_ERR_INVALID_ARG)
            untrue +=
                a >= b || !dt_slice_common(&slice[a], &slice[b], at, extent);
        overlaps += there;
    }
    ok(wrong == 0 && untrue == 0 && overlaps > 1000 && overlaps < 19000,
       "20000 sets of boxes, %d of them with an overlap", overlaps);
}

/* Boxes that no plane separates: a pinwheel around a hole. */
static void test_pinwheel(void)
{
    static const struct box box[] = {
        {{0, 0}, {2, 1}}, {{0, 1}, {1, 2}}, {{1, 2}, {2, 1}}, {{2, 0}, {1, 2}}};
    struct dt_slice slice[5];
    size_t a = 0, b = 0;
    for (int i = 0; i < 4; i++)
        slice[i] = (struct dt_slice){2, box[i].at, box[i].extent};
    ok(dt_slice_overlap(slice, 4, &a, &b) == DT_SUCCESS, "a pinwheel is fine");
    slice[4] = (struct dt_slice){2, (int64_t[]){1, 1}, (int64_t[]){2, 1}};
    ok(dt_slice_overlap(slice, 5, &a, &b) == DT_ERR_INVALID_ARG && a == 3 &&
           b == 4,
       "but not what also takes more than its hole");
}

/* A grid whose parts are compared pair by pair would take minutes. */
static void test_grid(void)
{
    enum { SIDE = 512, N = SIDE * SIDE };
    struct box *box = calloc(N + 1, sizeof(*box));
    struct dt_slice *slice = calloc(N + 1, sizeof(*slice));
    size_t a = 0, b = 0;
    for (int i = 0; i <= N; i++) {
        int k = i < N ? i : 1234; /* the last is there twice */
        box[i] = (struct box){{k % SIDE * 3, k / SIDE * 2}, {3, 2}};
        slice[i] = (struct dt_slice){2, box[i].at, box[i].extent};
    }
    ok(dt_slice_overlap(slice, N, &a, &b) == DT_SUCCESS,
       "a grid of 262144 boxes");
    ok(dt_slice_overlap(slice, N + 1, &a, &b) == DT_ERR_INVALID_ARG &&
           a == 1234 && b == N,
       "and one of them twice");
    free(slice);
    free(box);
}

int main(void)
{
    test_check();
    test_runs();
    test_stop();
    test_overlap();
    test_pinwheel();
    test_grid();
    return tap_done();
}
