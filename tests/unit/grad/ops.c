/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ops.c - each kind of operation, with each type, shape and reduction, which
 * each rank starts in an order of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grad.h"

enum { TYPES = 10, AT_ONCE = 24 };

static const struct shape {
    int ndim;
    int64_t shape[3];
    bool uneven;
} shapes[] = {
    {0, {0}, false},       {1, {0}, false},    {1, {1}, false},
    {2, {5, 3}, false},    {2, {0, 4}, false}, {2, {3, 0}, false},
    {3, {2, 3, 4}, false}, {2, {7, 2}, true},  {1, {1500}, false},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static struct {
    dt_grad_t grad;
    struct set sets[MOST_SETS];
    int nsets, nitems;
    struct item items[AT_ONCE];
    unsigned added;
    uint64_t order; /* another one on each rank */
} t;

/* Unnamed calls come in the same order on all ranks. */
static void sort_unnamed(int *order)
{
    int at[AT_ONCE], named = 0, n = 0;
    for (int i = 0; i < t.nitems; i++)
        if (!t.items[order[i]].name[0])
            at[n++] = i;
    for (int i = 0; i < n; i++, named++) {
        while (t.items[named].name[0])
            named++;
        order[at[i]] = named;
    }
}

static void run_batch(void)
{
    int order[AT_ONCE];
    draw_order(&t.order, order, t.nitems);
    sort_unnamed(order);
    for (int i = 0; i < t.nitems; i++)
        item_start(&t.items[order[i]], t.grad);
    draw_order(&t.order, order, t.nitems);
    for (int i = 0; i < t.nitems; i++)
        item_verify(&t.items[order[i]]);
    t.nitems = 0;
}

/* The next set gets it, and each sixth of the world no name. */
static void add(const struct wish *wish)
{
    struct wish mine = *wish;
    const struct set *set = &t.sets[t.added % (unsigned)t.nsets];
    mine.salt = t.added++;
    if (set->me < 0)
        return;
    /* thirds have no end, and the order of factors is not fixed */
    if (mine.op == DT_OP_AVG && set->n == 3 &&
        (mine.wire != mine.dtype || mine.prescale != 1 || mine.postscale != 1))
        mine.op = DT_OP_SUM;
    mine.root = (int)(t.added % (unsigned)set->n);
    struct item *item = &t.items[t.nitems++];
    if (set->id != DT_GRAD_WORLD || t.added % 6)
        snprintf(item->name, sizeof(item->name), "op %u", t.added);
    item_add(item, set, &mine);
    if (t.nitems == AT_ONCE)
        run_batch();
}

static void add_shape(struct wish wish, const struct shape *shape)
{
    bool scalar =
        wish.kind == DT_GRAD_ALLREDUCE || wish.kind == DT_GRAD_BROADCAST;
    if (!shape->ndim && !scalar)
        return;
    wish.ndim = shape->ndim;
    memcpy(wish.shape, shape->shape, sizeof(shape->shape));
    wish.uneven = shape->uneven && (wish.kind == DT_GRAD_ALLGATHER ||
                                    wish.kind == DT_GRAD_ALLTOALL);
    for (int in_place = 0; in_place < 2; in_place++) {
        wish.in_place = in_place;
        add(&wish);
    }
}

static void add_kinds(dt_dtype_t dtype, const struct shape *shape)
{
    static const dt_grad_kind_t kinds[] = {DT_GRAD_ALLREDUCE, DT_GRAD_ALLGATHER,
                                           DT_GRAD_BROADCAST, DT_GRAD_ALLTOALL,
                                           DT_GRAD_REDUCESCATTER};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        add_shape(wish_of(kinds[k], dtype, 0), shape);
}

static void add_reductions(dt_dtype_t dtype)
{
    struct wish wish = wish_of(DT_GRAD_ALLREDUCE, dtype, 130);
    for (wish.op = DT_OP_SUM; wish.op <= DT_OP_PROD; wish.op++)
        add(&wish);
    wish.kind = DT_GRAD_REDUCESCATTER;
    for (wish.op = DT_OP_SUM; wish.op <= DT_OP_AVG; wish.op += DT_OP_AVG)
        for (wish.shape[0] = 0; wish.shape[0] < 10; wish.shape[0] += 3)
            add(&wish);
}

/* Halves are truncated on integers. */
static void add_factors(dt_dtype_t dtype)
{
    static const double factors[][2] = {{0.5, 1}, {1, 0.5}, {2, 0.25}, {0, 1}};
    for (size_t k = 0; k < sizeof(factors) / sizeof(factors[0]); k++) {
        struct wish wish = wish_of(DT_GRAD_ALLREDUCE, dtype, 77);
        wish.prescale = factors[k][0];
        wish.postscale = factors[k][1];
        add(&wish);
        wish.kind = DT_GRAD_REDUCESCATTER;
        add(&wish);
        wish.op = dtype < DT_DTYPE_F16 ? DT_OP_SUM : DT_OP_AVG;
        for (int i = 0; i < t.nsets; i++)
            add(&wish);
        wish.kind = DT_GRAD_ALLREDUCE;
        for (int i = 0; i < t.nsets; i++)
            add(&wish);
    }
}

static void add_wires(void)
{
    static const dt_dtype_t to[] = {DT_DTYPE_F16, DT_DTYPE_BF16};
    static const dt_dtype_t from[] = {DT_DTYPE_F32, DT_DTYPE_F64};
    for (int i = 0; i < 8; i++) {
        struct wish wish = wish_of(DT_GRAD_ALLREDUCE, from[i / 2 % 2], 333);
        wish.wire = to[i % 2];
        wish.prescale = i < 4 ? 1 : 0.5;
        wish.postscale = i < 4 ? 1 : 4;
        wish.in_place = i % 3;
        for (int k = 0; k < 2 * t.nsets; k++) {
            wish.op = k < t.nsets ? DT_OP_SUM : DT_OP_AVG;
            add(&wish);
        }
    }
}

static void add_elements(void)
{
    static const size_t bytes[] = {1, 2, 8, 3, 16, 100};
    static const dt_grad_kind_t kinds[] = {DT_GRAD_ALLGATHER, DT_GRAD_BROADCAST,
                                           DT_GRAD_ALLTOALL};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
        for (int k = 0; k < 3; k++)
            for (int uneven = 0; uneven < 2; uneven++) {
                struct wish wish = wish_of(kinds[k], DT_DTYPE_F32, 5);
                wish.element_bytes = bytes[i];
                wish.uneven = uneven && k != 1;
                add(&wish);
            }
}

static void begin(void)
{
    t.grad = begin_engine();
    t.nsets = make_sets(t.grad, t.sets);
    t.order = 77u + (uint64_t)dt_rank();
}

static void end(void)
{
    run_batch();
    end_engine(t.grad);
}

void mode_ops(int argc, char **argv)
{
    const struct wish barrier = wish_of(DT_GRAD_BARRIER, DT_DTYPE_I8, 0);
    (void)argc, (void)argv;
    begin();
    for (int type = 0; type < TYPES; type++) {
        for (size_t s = 0; s < SHAPES; s++)
            add_kinds((dt_dtype_t)type, &shapes[s]);
        add_reductions((dt_dtype_t)type);
        if (type != DT_DTYPE_F8E4M3 && type != DT_DTYPE_F8E5M2)
            add_factors((dt_dtype_t)type);
        add(&barrier);
    }
    add_wires();
    add_elements();
    end();
}

/* ---- several in one call ---- */

static struct wish drawn_wish(uint64_t *state)
{
    static const dt_grad_kind_t kinds[] = {
        DT_GRAD_ALLREDUCE,     DT_GRAD_ALLGATHER, DT_GRAD_BROADCAST,
        DT_GRAD_REDUCESCATTER, DT_GRAD_ALLTOALL,  DT_GRAD_ALLREDUCE};
    struct wish wish =
        wish_of(kinds[draw(state, 6)], DT_DTYPE_F32, (int64_t)draw(state, 9));
    wish.dtype = wish.wire = (dt_dtype_t)draw(state, TYPES);
    wish.uneven = draw(state, 2) && (wish.kind == DT_GRAD_ALLGATHER ||
                                     wish.kind == DT_GRAD_ALLTOALL);
    wish.in_place = draw(state, 2);
    wish.salt = (unsigned)draw(state, 1000);
    return wish;
}

void mode_groups_of_ops(int argc, char **argv)
{
    uint64_t state = 5;
    (void)argc, (void)argv;
    begin();
    for (int i = 0; i < 60; i++) {
        const struct set *set = &t.sets[i % t.nsets];
        struct item *item = &t.items[t.nitems];
        int n = 1 + (int)draw(&state, MOST_PARTS);
        *item = (struct item){0};
        snprintf(item->name, sizeof(item->name), "group %d", i);
        for (int k = 0; k < n; k++) {
            struct wish wish = drawn_wish(&state);
            wish.root = (int)draw(&state, (uint64_t)set->n);
            if (set->me >= 0)
                item_add(item, set, &wish);
        }
        t.nitems += set->me >= 0;
        if (i % 10 == 9)
            run_batch();
    }
    end();
}

/* ---- one at a time ---- */

/* Rank 0 has started it, the others only when it has looked. */
static void poll_one(dt_grad_t grad, bool unnamed)
{
    float in[3] = {1, 2, 3}, out[3] = {0};
    const int64_t shape[] = {3};
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, in, out);
    dt_grad_work_t work = NULL;
    int ndim;
    if (dt_rank() > 0)
        meet();
    expect(dt_grad_start(grad, unnamed ? NULL : "poll", &op, 1, &work) ==
               DT_SUCCESS,
           "start");
    if (dt_rank() == 0 && dt_size() > 1) {
        expect(dt_grad_test(work) == DT_IN_PROGRESS, "in progress");
        expect(dt_grad_wait(work, 0) == DT_IN_PROGRESS, "0 seconds");
        expect(dt_grad_wait(work, 0.05) == DT_IN_PROGRESS, "0.05 seconds");
        expect(dt_grad_output(work, 0, &ndim, NULL, NULL) != DT_SUCCESS,
               "no output yet");
        expect(out[0] == 0 && out[2] == 0, "untouched");
    }
    if (dt_rank() == 0)
        meet();
    expect(dt_grad_wait(work, 100) == DT_SUCCESS, "wait");
    expect(dt_grad_test(work) == DT_SUCCESS, "test after wait");
    expect(dt_grad_wait(work, 0) == DT_SUCCESS, "wait again");
    expect(out[1] == 2.f * (float)dt_size(), "the sum");
    dt_grad_free(work);
}

/* Work that was forgotten goes on; its name is free when it is complete. */
static void forget(dt_grad_t grad)
{
    static float in[1000], out[1000];
    const int64_t shape[] = {1000};
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, in, out);
    dt_grad_work_t work = NULL;
    dt_result_t rc;
    time_t limit = time(NULL) + 100;
    in[999] = 1;
    expect(dt_grad_start(grad, "forgotten", &op, 1, &work) == DT_SUCCESS,
           "start");
    dt_grad_free(work);
    do
        rc = run_op(grad, "forgotten", &op);
    while (rc == DT_ERR_INVALID_ARG && time(NULL) < limit);
    expect(rc == DT_SUCCESS, "the second of that name");
    expect(out[999] == (float)dt_size(), "its sum");
}

void mode_poll(int argc, char **argv)
{
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    for (int i = 0; i < 4; i++) {
        poll_one(grad, i % 2);
        meet();
    }
    forget(grad);
    dt_grad_free(NULL);
    end_engine(grad);
    /* it can be opened again, and running numbers begin again on all ranks */
    grad = begin_engine();
    poll_one(grad, true);
    end_engine(grad);
}

/* Sums of integers are exact beyond 2^53, and wrap. */
static void long_integers(dt_grad_t grad)
{
    int64_t big = ((int64_t)1 << 60) + 1, out = 0;
    int64_t wrap = INT64_MAX, size = dt_size();
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I64, 0, NULL, &big, &out);
    expect(run_op(grad, "big", &op) == DT_SUCCESS &&
               out == (int64_t)((uint64_t)big * (uint64_t)size),
           "2^60 + 1 is summed exactly");
    op.in = &wrap;
    expect(run_op(grad, "wrap", &op) == DT_SUCCESS &&
               out == (int64_t)((uint64_t)wrap * (uint64_t)size),
           "sums wrap");
    op.in = &big;
    op.op = DT_OP_MAX;
    expect(run_op(grad, "big", &op) == DT_SUCCESS && out == big,
           "2^60 + 1 is the maximum");
}

/* 16 dimensions, a name of 1000 bytes, and one with odd bytes. */
static void limits(dt_grad_t grad)
{
    int64_t shape[DT_GRAD_DIMS], got[DT_GRAD_DIMS];
    char name[1001];
    float in[8] = {1, 0, 0, 0, 0, 0, 0, 1}, out[8] = {0};
    dt_grad_work_t work = NULL;
    int ndim = 0;
    for (int d = 0; d < DT_GRAD_DIMS; d++)
        shape[d] = d % 6 == 5 ? 2 : 1;
    shape[0] = 2;
    memset(name, 'n', 1000);
    name[1000] = '\0';
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, DT_GRAD_DIMS, shape, in, out);
    expect(dt_grad_start(grad, name, &op, 1, &work) == DT_SUCCESS &&
               dt_grad_wait(work, -1) == DT_SUCCESS,
           "16 dimensions and a name of 1000 bytes");
    expect(dt_grad_output(work, 0, &ndim, got, NULL) == DT_SUCCESS &&
               ndim == DT_GRAD_DIMS && !memcmp(shape, got, sizeof(shape)),
           "shape of 16 dimensions");
    dt_grad_free(work);
    expect(out[7] == (float)dt_size(), "its last element");
    op.ndim = 1;
    expect(run_op(grad, "\x01%s\"\\\n\xff", &op) == DT_SUCCESS,
           "a name of odd bytes");
}

/* Long ones, of which each takes several buckets and boards. */
static void long_vectors(void)
{
    static const dt_grad_kind_t kinds[] = {DT_GRAD_ALLREDUCE, DT_GRAD_BROADCAST,
                                           DT_GRAD_ALLGATHER,
                                           DT_GRAD_REDUCESCATTER};
    for (size_t i = 0; i < 4; i++) {
        struct wish wish = wish_of(kinds[i], DT_DTYPE_F32, 300001);
        wish.in_place = i % 2;
        add(&wish);
        wish.op = kinds[i] == DT_GRAD_ALLREDUCE ? DT_OP_AVG : DT_OP_SUM;
        wish.wire =
            kinds[i] == DT_GRAD_ALLREDUCE ? DT_DTYPE_BF16 : DT_DTYPE_F32;
        add(&wish);
    }
}

void mode_long(int argc, char **argv)
{
    struct wish wish = wish_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 3);
    (void)argc, (void)argv;
    begin();
    long_integers(t.grad);
    limits(t.grad);
    long_vectors();
    run_batch();
    /* the same names again and again */
    for (int i = 0; i < 100; i++) {
        struct item *item = &t.items[0];
        snprintf(item->name, sizeof(item->name), "again");
        item_add(item, &t.sets[0], &wish);
        item_start(item, t.grad);
        item_verify(item);
    }
    end();
}

/* ---- adaptive summation ---- */

/* What of two vectors comes out, by the paper's formula. */
static void combine_two(const double *a, const double *b, double *out, int n)
{
    double dot = 0, aa = 0, bb = 0;
    for (int i = 0; i < n; i++) {
        dot += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    double fa = aa > 0 ? 1 - dot / (2 * aa) : 1;
    double fb = bb > 0 ? 1 - dot / (2 * bb) : 1;
    for (int i = 0; i < n; i++)
        out[i] = fa * a[i] + fb * b[i];
}

static dt_result_t adasum(dt_grad_t grad, const double *in, double *out, int n,
                          dt_dtype_t dtype)
{
    float narrow[64] = {0}, sum[64] = {0};
    const int64_t shape[] = {n};
    bool wide = dtype == DT_DTYPE_F64;
    for (int i = 0; i < n; i++)
        narrow[i] = (float)in[i];
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, dtype, 1, shape, wide ? in : (void *)narrow,
              wide ? out : (void *)sum);
    op.op = DT_GRAD_ADASUM;
    dt_result_t rc = run_op(grad, "adasum", &op);
    for (int i = 0; !wide && i < n; i++)
        out[i] = (double)sum[i];
    return rc;
}

static bool is_near(const double *a, const double *b, int n, double most)
{
    for (int i = 0; i < n; i++)
        if (a[i] - b[i] > most || b[i] - a[i] > most)
            return false;
    return true;
}

static void adasum_type(dt_grad_t grad, dt_dtype_t dtype, double most)
{
    double in[64] = {0}, out[64], wanted[64] = {0}, given[2][64] = {{0}};
    int rank = dt_rank(), size = dt_size(), n = 64;
    /* at right angles they are added */
    in[rank] = rank + 1;
    for (int r = 0; r < size; r++)
        wanted[r] = r + 1;
    expect(adasum(grad, in, out, n, dtype) == DT_SUCCESS &&
               is_near(out, wanted, n, most),
           "at right angles, type %d", (int)dtype);
    /* equal ones stay */
    for (int i = 0; i < n; i++)
        in[i] = i % 5 - 2;
    expect(adasum(grad, in, out, n, dtype) == DT_SUCCESS &&
               is_near(out, in, n, most),
           "equal, type %d", (int)dtype);
    /* of nothing but zeros comes nothing else */
    for (int i = 0; i < n; i++)
        in[i] = rank == size - 1 ? i : 0;
    for (int i = 0; i < n; i++)
        wanted[i] = i;
    expect(adasum(grad, in, out, n, dtype) == DT_SUCCESS &&
               is_near(out, wanted, n, 40 * most),
           "zeros, type %d", (int)dtype);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < n; i++)
            given[r][i] = (i * (3 + r) + 5 * r) % 7 - 3;
    expect(adasum(grad, given[rank % 2], out, n, dtype) == DT_SUCCESS,
           "any, type %d", (int)dtype);
    expect_same(digest(1, out, sizeof(out)), "the result");
    combine_two(given[0], given[1], wanted, n);
    expect(size != 2 || is_near(out, wanted, n, most), "of two, type %d",
           (int)dtype);
}

void mode_adasum(int argc, char **argv)
{
    double in[4] = {1, 2, 3, 4}, out[4];
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    if (dt_size() == 3) {
        dt_result_t rc = adasum(grad, in, out, 4, DT_DTYPE_F64);
        expect(rc == DT_ERR_UNSUPPORTED || rc == DT_ERR_INVALID_ARG,
               "of three ranks: %s", dt_strerror(rc));
    } else {
        adasum_type(grad, DT_DTYPE_F64, 1e-12);
        adasum_type(grad, DT_DTYPE_F32, 1e-5);
    }
    end_engine(grad);
}
