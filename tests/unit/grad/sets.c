/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sets.c - process sets, and ranks that have no more data. */
#include <stdio.h>
#include <string.h>

#include "grad.h"

/* ---- sets ---- */

static void wrong_sets(dt_grad_t grad)
{
    int set = -5, last = dt_size() - 1;
    const int twice[] = {0, 0}, none[] = {0, dt_size()}, below[] = {-1};
    int all[MOST_RANKS], mine[] = {dt_rank()};
    for (int r = 0; r <= last; r++)
        all[r] = last - r;
    expect(dt_grad_set_add(grad, twice, 2, &set) == DT_ERR_INVALID_ARG,
           "a rank twice");
    expect(dt_grad_set_add(grad, none, 2, &set) == DT_ERR_INVALID_ARG,
           "no such rank");
    expect(dt_grad_set_add(grad, below, 1, &set) == DT_ERR_INVALID_ARG,
           "rank -1");
    expect(dt_grad_set_add(grad, all, last + 1, &set) == DT_ERR_INVALID_ARG,
           "the set of all ranks exists");
    if (last > 0)
        expect(dt_grad_set_add(grad, mine, 1, &set) == DT_ERR_MISMATCH,
               "each rank another set");
    expect(set == -5, "no output of a call that fails");
    expect(dt_grad_set_remove(grad, DT_GRAD_WORLD) == DT_ERR_INVALID_ARG,
           "the world stays");
    expect(dt_grad_set_remove(grad, 4711) == DT_ERR_INVALID_ARG,
           "no such set to remove");
    expect(dt_grad_set_rank(grad, 4711) == DT_ERR_INVALID_ARG,
           "number in no set");
    expect(dt_grad_set_size(grad, -1) == DT_ERR_INVALID_ARG, "size of no set");
}

static void list_sets(dt_grad_t grad, const struct set *sets, int nsets)
{
    int ids[MOST_SETS], ranks[MOST_RANKS], n = MOST_SETS;
    expect(dt_grad_sets(grad, ids, &n) == DT_SUCCESS && n == nsets,
           "%d sets of %d", n, nsets);
    for (int i = 1; i < n && i < MOST_SETS; i++)
        expect(ids[i] > ids[i - 1], "sets in ascending order");
    n = 0;
    expect(dt_grad_sets(grad, ids, &n) == DT_ERR_INVALID_ARG && n == nsets,
           "no room for the sets");
    for (int i = 0; i < nsets; i++) {
        n = MOST_RANKS;
        expect(dt_grad_set_ranks(grad, sets[i].id, ranks, &n) == DT_SUCCESS &&
                   n == sets[i].n &&
                   !memcmp(ranks, sets[i].ranks, sizeof(*ranks) * (size_t)n),
               "the ranks of set %d", sets[i].id);
        n = 0;
        expect(dt_grad_set_ranks(grad, sets[i].id, ranks, &n) ==
                       DT_ERR_INVALID_ARG &&
                   n == sets[i].n,
               "no room for the ranks");
    }
}

/* A set that waits does not hinder another one, also of the same ranks. */
static void at_the_same_time(dt_grad_t grad, const struct set *sets, int nsets)
{
    struct item waits = {.name = "same"};
    const struct wish wish = wish_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 4);
    bool late = dt_rank() == dt_size() - 1;
    item_add(&waits, &sets[0], &wish);
    if (!late)
        item_start(&waits, grad);
    for (int i = 1; i < nsets; i++) {
        struct item goes = {.name = "same"};
        if (sets[i].me < 0)
            continue;
        item_add(&goes, &sets[i], &wish);
        item_start(&goes, grad);
        item_verify(&goes);
    }
    if (!late)
        expect(dt_grad_test(waits.work) == DT_IN_PROGRESS,
               "the same name in another set waits");
    meet();
    if (late)
        item_start(&waits, grad);
    item_verify(&waits);
}

static void removed(dt_grad_t grad, const struct set *set)
{
    int32_t x = 1;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &x);
    dt_grad_work_t work = NULL;
    int again = -1, turned[MOST_RANKS];
    expect(dt_grad_set_remove(grad, set->id) == DT_SUCCESS, "remove a set");
    op.set = set->id;
    expect(dt_grad_start(grad, "gone", &op, 1, &work) == DT_ERR_INVALID_ARG,
           "the set is gone");
    expect(dt_grad_set_size(grad, set->id) == DT_ERR_INVALID_ARG,
           "its size is gone");
    for (int i = 0; i < set->n; i++)
        turned[i] = set->ranks[set->n - 1 - i];
    expect(dt_grad_set_add(grad, turned, set->n, &again) == DT_SUCCESS,
           "the same set anew, in another order");
    expect(dt_grad_set_rank(grad, again) == set->me, "its order is ascending");
    op.set = again;
    x = 1;
    if (set->me >= 0)
        expect(run_op(grad, "anew", &op) == DT_SUCCESS && x == set->n,
               "a sum in it");
    expect(dt_grad_set_remove(grad, again) == DT_SUCCESS, "remove it again");
}

/* What has no name in a set is numbered there. */
static void numbered(dt_grad_t grad, const struct set *set)
{
    int32_t x = 1, sum = 0;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &sum);
    op.set = set->id;
    if (set->me >= 0)
        expect(run_op(grad, NULL, &op) == DT_SUCCESS && sum == set->n,
               "without a name in set %d", set->id);
    expect_alive(grad, NULL);
}

/* A set in which something is under way on one rank stays, on all. */
static void busy(dt_grad_t grad, const struct set *set)
{
    int32_t x = 1, sum = 0;
    dt_grad_work_t work = NULL;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &sum);
    op.set = set->id;
    if (set->me == 0)
        expect(dt_grad_start(grad, "held", &op, 1, &work) == DT_SUCCESS,
               "start");
    expect(dt_grad_set_remove(grad, set->id) == DT_ERR_INVALID_ARG &&
               strstr(dt_last_error(), "under way"),
           "a busy set is removed: %s", dt_last_error());
    if (set->me > 0)
        expect(dt_grad_start(grad, "held", &op, 1, &work) == DT_SUCCESS,
               "start");
    if (work)
        expect(finish(work).rc == DT_SUCCESS && sum == set->n, "the sum");
}

void mode_process_sets(int argc, char **argv)
{
    struct set sets[MOST_SETS];
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    expect(dt_grad_set_rank(grad, DT_GRAD_WORLD) == dt_rank() &&
               dt_grad_set_size(grad, DT_GRAD_WORLD) == dt_size(),
           "the world is set 0");
    int nsets = make_sets(grad, sets);
    wrong_sets(grad);
    list_sets(grad, sets, nsets);
    if (nsets > 1) {
        at_the_same_time(grad, sets, nsets);
        numbered(grad, &sets[1]);
        if (sets[1].n > 1)
            busy(grad, &sets[1]);
        removed(grad, &sets[nsets - 1]);
        list_sets(grad, sets, nsets - 1);
    }
    end_engine(grad);
}

/* ---- no more data ---- */

/* The ranks that have not joined start one; all have started or joined. */
static void after_joins(dt_grad_t grad, int here, int step)
{
    int size = dt_size();
    char name[32];
    double x[2] = {size, 2.0 * size}, sum[2] = {0};
    const int64_t shape[] = {2};
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F64, 1, shape, x, sum);
    snprintf(name, sizeof(name), "after %d", step);
    expect(run_op(grad, name, &op) == DT_SUCCESS && sum[0] == here * size &&
               sum[1] == 2.0 * here * size,
           "%d of %d ranks add", here, size);
    op.op = DT_OP_AVG;
    expect(run_op(grad, NULL, &op) == DT_SUCCESS && sum[0] == here,
           "the divisor stays");
    op.op = DT_OP_MAX;
    expect(here == size || run_op(grad, name, &op) == DT_ERR_UNSUPPORTED,
           "a maximum while a rank has joined");
    for (dt_grad_kind_t kind = DT_GRAD_ALLGATHER;
         here < size && kind <= DT_GRAD_REDUCESCATTER; kind++) {
        bool taken = kind == DT_GRAD_ALLGATHER || kind == DT_GRAD_ALLTOALL;
        double in[MOST_RANKS] = {0}, out[MOST_RANKS];
        const int64_t rows[] = {size};
        op = op_of(kind, DT_DTYPE_F64, 1, rows, in, taken ? NULL : out);
        dt_result_t rc = run_op(grad, name, &op);
        expect(rc == DT_ERR_UNSUPPORTED, "kind %d while a rank has joined: %s",
               (int)kind, dt_strerror(rc));
    }
}

/* One rank after the other joins, in this order. */
static void join_by_turns(dt_grad_t grad, bool descending)
{
    int size = dt_size(), last = -7;
    bool joined = false;
    for (int step = 0; step < size; step++) {
        int who = descending ? size - 1 - step : step;
        if (who == dt_rank()) {
            dt_result_t rc = dt_grad_join(grad, 0, &last);
            expect(rc == DT_IN_PROGRESS ||
                       (rc == DT_SUCCESS && step == size - 1),
                   "join: %s", dt_strerror(rc));
            joined = true;
        }
        meet();
        if (!joined)
            after_joins(grad, size - 1 - step, step);
        meet();
    }
    if (last == -7)
        expect(dt_grad_join(grad, -1, &last) == DT_SUCCESS, "join");
    expect(last == (descending ? 0 : size - 1), "the last one was %d", last);
}

void mode_join(int argc, char **argv)
{
    struct wish wish = wish_of(DT_GRAD_ALLGATHER, DT_DTYPE_I32, 4);
    struct set world[MOST_SETS];
    int last = -1;
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    make_sets(grad, world);
    wish.uneven = true;
    for (int i = 0; i < 4; i++) {
        struct item item = {.name = "all are back"};
        join_by_turns(grad, i % 2);
        item_add(&item, &world[0], &wish);
        item_start(&item, grad);
        item_verify(&item);
        /* running numbers are the same again */
        expect_alive(grad, NULL);
    }
    expect(dt_grad_join(grad, -1, &last) == DT_SUCCESS, "all at once");
    expect_same((uint64_t)last * 2, "who came last");
    end_engine(grad);
}
