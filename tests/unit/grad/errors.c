/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* errors.c - ranks that disagree, calls that are wrong on one rank alone, and
 * engines that are closed, twice opened and forked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grad.h"

/* ---- ranks that disagree ---- */

/* The odd rank gives the second one; words of both are in the text, any of
 * those between bars. */
static const struct dispute {
    const char *about;
    struct dispute_side {
        dt_grad_kind_t kind;
        dt_dtype_t dtype, wire;
        int op, root, ndim;
        int64_t shape[2];
        double prescale, postscale;
        const char *words;
    } side[2];
} disputes[] = {
#define F32 DT_DTYPE_F32, DT_DTYPE_F32
#define SUM DT_OP_SUM
    {"kind",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 1, 1, "allreduce"},
      {DT_GRAD_BROADCAST, F32, SUM, 0, 1, {5}, 1, 1, "broadcast"}}},
    {"kind of a barrier",
     {{DT_GRAD_REDUCESCATTER,
       F32,
       SUM,
       0,
       1,
       {5},
       1,
       1,
       "reducescatter|reduce-scatter|reduce_scatter"},
      {DT_GRAD_BARRIER, F32, SUM, 0, 0, {0}, 1, 1, "barrier"}}},
    {"type",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 1, 1, "f32|float32"},
      {DT_GRAD_ALLREDUCE,
       DT_DTYPE_I64,
       DT_DTYPE_I64,
       SUM,
       0,
       1,
       {5},
       1,
       1,
       "i64|int64"}}},
    {"size of an element",
     {{DT_GRAD_ALLGATHER, F32, SUM, 0, 1, {5}, 1, 1, "f32|float32|4"},
      {DT_GRAD_ALLGATHER,
       DT_DTYPE_F64,
       DT_DTYPE_F64,
       SUM,
       0,
       1,
       {5},
       1,
       1,
       "f64|float64|8"}}},
    {"type on the network",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 1, 1, "f32|float32"},
      {DT_GRAD_ALLREDUCE,
       DT_DTYPE_F32,
       DT_DTYPE_F16,
       SUM,
       0,
       1,
       {5},
       1,
       1,
       "f16|float16"}}},
    {"shape",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {1234}, 1, 1, "1234"},
      {DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {1235}, 1, 1, "1235"}}},
    {"shape of as many",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 2, {17, 19}, 1, 1, "17"},
      {DT_GRAD_ALLREDUCE, F32, SUM, 0, 2, {19, 17}, 1, 1, "19"}}},
    {"dimensions",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {323}, 1, 1, "323"},
      {DT_GRAD_ALLREDUCE, F32, SUM, 0, 2, {17, 19}, 1, 1, "17"}}},
    {"dimensions, one a scalar",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 0, {0}, 1, 1, ""},
      {DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {1}, 1, 1, "1"}}},
    {"rows of an allgather",
     {{DT_GRAD_ALLGATHER, F32, SUM, 0, 2, {3, 71}, 1, 1, "71"},
      {DT_GRAD_ALLGATHER, F32, SUM, 0, 2, {3, 73}, 1, 1, "73"}}},
    {"rows of an alltoall",
     {{DT_GRAD_ALLTOALL, F32, SUM, 0, 2, {0, 71}, 1, 1, "71"},
      {DT_GRAD_ALLTOALL, F32, SUM, 0, 2, {0, 73}, 1, 1, "73"}}},
    {"shape of a reducescatter",
     {{DT_GRAD_REDUCESCATTER, F32, SUM, 0, 1, {1234}, 1, 1, "1234"},
      {DT_GRAD_REDUCESCATTER, F32, SUM, 0, 1, {1235}, 1, 1, "1235"}}},
    {"shape of a broadcast",
     {{DT_GRAD_BROADCAST, F32, SUM, 0, 1, {1234}, 1, 1, "1234"},
      {DT_GRAD_BROADCAST, F32, SUM, 0, 1, {1235}, 1, 1, "1235"}}},
    {"reduction",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 1, 1, "sum"},
      {DT_GRAD_ALLREDUCE, F32, DT_OP_MAX, 0, 1, {5}, 1, 1, "max"}}},
    {"sum or average",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 1, 1, "sum"},
      {DT_GRAD_ALLREDUCE, F32, DT_OP_AVG, 0, 1, {5}, 1, 1, "avg|average"}}},
    {"root",
     {{DT_GRAD_BROADCAST, F32, SUM, 0, 1, {5}, 1, 1, "root"},
      {DT_GRAD_BROADCAST, F32, SUM, 1, 1, {5}, 1, 1, "root"}}},
    {"factor before",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 0.375, 1, "0.375"},
      {DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 0.625, 1, "0.625"}}},
    {"factor after",
     {{DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 1, 0.375, "0.375"},
      {DT_GRAD_ALLREDUCE, F32, SUM, 0, 1, {5}, 1, 0.625, "0.625"}}},
#undef F32
#undef SUM
};
#define DISPUTES (sizeof(disputes) / sizeof(disputes[0]))

/* One of the words between bars is in the text, in any case of letters. */
static bool says(const char *text, const char *words)
{
    char each[64];
    do {
        size_t len = strcspn(words, "|");
        snprintf(each, sizeof(each), "%.*s", (int)len, words);
        if (strcasestr(text, each))
            return true;
        words += len + (words[len] == '|');
    } while (*words);
    return false;
}

/* One line, which names the operation, the odd rank and another one. */
static void expect_text(const struct ended *ended, const char *about,
                        const char *name, int odd)
{
    char rank[16];
    snprintf(rank, sizeof(rank), "%d", odd);
    expect(ended->rc == DT_ERR_MISMATCH, "%s: %s instead of a mismatch", about,
           dt_strerror(ended->rc));
    expect(strstr(ended->text, name) && strcasestr(ended->text, "rank") &&
               strstr(ended->text, rank) && !strchr(ended->text, '\n'),
           "%s: one line with the name and the ranks: %s", about, ended->text);
}

static void have_dispute(dt_grad_t grad, const struct dispute *dispute,
                         bool odd, int who)
{
    static double in[4000], out[4000];
    const struct dispute_side *side = &dispute->side[odd];
    bool taken =
        side->kind == DT_GRAD_ALLGATHER || side->kind == DT_GRAD_ALLTOALL;
    char name[64];
    dt_grad_work_t work = NULL;
    snprintf(name, sizeof(name), "disputed %s", dispute->about);
    dt_grad_op_t op = op_of(side->kind, side->dtype, side->ndim, side->shape,
                            in, taken ? NULL : out);
    op.wire = side->wire;
    op.op = side->op;
    op.root = side->root;
    op.prescale = side->prescale;
    op.postscale = side->postscale;
    dt_result_t rc = dt_grad_start(grad, name, &op, 1, &work);
    expect(rc == DT_SUCCESS, "%s: start: %s", dispute->about, dt_strerror(rc));
    if (rc != DT_SUCCESS)
        return;
    struct ended ended = finish(work);
    expect_text(&ended, dispute->about, name, who);
    for (int i = 0; i < 2; i++)
        expect(says(ended.text, dispute->side[i].words),
               "%s: %s is in the text: %s", dispute->about,
               dispute->side[i].words, ended.text);
    expect_alive(grad, name);
}

static void dispute_number(dt_grad_t grad, bool odd, int who)
{
    float in = 1, out[2];
    dt_grad_work_t work = NULL;
    dt_grad_op_t ops[2];
    for (int i = 0; i < 2; i++)
        ops[i] = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 0, NULL, &in, &out[i]);
    expect(dt_grad_start(grad, "many", ops, odd ? 1 : 2, &work) == DT_SUCCESS,
           "start a group");
    struct ended ended = finish(work);
    expect_text(&ended, "size of a group", "many", who);
    expect_alive(grad, "many");
}

/* One wrong operation of a group is enough for all of it. */
static void dispute_in_group(dt_grad_t grad, bool odd, int who)
{
    float in[2] = {1, 1}, out[2] = {0};
    dt_grad_work_t work = NULL;
    dt_grad_op_t ops[2];
    const int64_t one[] = {1}, two[] = {2};
    for (int i = 0; i < 2; i++)
        ops[i] = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, i && odd ? two : one,
                       in, out);
    expect(dt_grad_start(grad, "some", ops, 2, &work) == DT_SUCCESS,
           "start a group");
    struct ended ended = finish(work);
    expect_text(&ended, "shape in a group", "some", who);
    expect_alive(grad, "some");
}

/* In a set, its numbers of the ranks are not those of the world. */
static void dispute_in_set(dt_grad_t grad)
{
    const int ranks[] = {dt_size() - 1, dt_size() - 2};
    int set;
    double in[9], out[9];
    const int64_t shape[] = {dt_rank() == ranks[0] ? 8 : 9};
    dt_grad_work_t work = NULL;
    if (dt_size() < 3)
        return;
    expect(dt_grad_set_add(grad, ranks, 2, &set) == DT_SUCCESS, "a set");
    if (dt_grad_set_rank(grad, set) < 0)
        return;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F64, 1, shape, in, out);
    op.set = set;
    expect(dt_grad_start(grad, "in a set", &op, 1, &work) == DT_SUCCESS,
           "start in a set");
    struct ended ended = finish(work);
    expect_text(&ended, "shape in a set", "in a set", ranks[0]);
}

void mode_mismatch(int argc, char **argv)
{
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    for (int k = 0; k < 2; k++) {
        int who = k ? 0 : dt_size() - 1;
        bool odd = dt_rank() == who;
        for (size_t i = 0; i < DISPUTES; i++)
            have_dispute(grad, &disputes[i], odd, who);
        dispute_number(grad, odd, who);
        dispute_in_group(grad, odd, who);
    }
    dispute_in_set(grad);
    end_engine(grad);
}

/* ---- calls that are wrong by themselves ---- */

static dt_grad_t engine;
static double numbers[64];
static const int64_t four[] = {4};

/* An operation that is right, to be spoilt. */
static dt_grad_op_t right(dt_grad_kind_t kind)
{
    bool taken = kind == DT_GRAD_ALLGATHER || kind == DT_GRAD_ALLTOALL;
    return op_of(kind, DT_DTYPE_F32, 1, four, numbers,
                 taken ? NULL : numbers + 32);
}

static void refuse(const dt_grad_op_t *op, const char *name, int n,
                   const char *what)
{
    dt_grad_work_t work = NULL;
    dt_result_t rc = dt_grad_start(engine, name, op, n, &work);
    expect(rc == DT_ERR_INVALID_ARG, "%s: %s", what, dt_strerror(rc));
    expect(rc == DT_SUCCESS || (!work && dt_last_error()[0]),
           "%s: a text and no work", what);
}

/* Or UNSUPPORTED: what the header does not decide. */
static void reject(const dt_grad_op_t *op, const char *what)
{
    dt_grad_work_t work = NULL;
    dt_result_t rc = dt_grad_start(engine, "rejected", op, 1, &work);
    expect(rc == DT_ERR_INVALID_ARG || rc == DT_ERR_UNSUPPORTED, "%s: %s", what,
           dt_strerror(rc));
}

static void wrong_names(void)
{
    char name[1002];
    const dt_grad_op_t op = right(DT_GRAD_ALLREDUCE);
    memset(name, 'n', 1001);
    name[1001] = '\0';
    refuse(&op, name, 1, "a name of 1001 bytes");
    refuse(&op, "", 1, "a name of no bytes");
    refuse(&op, "none", 0, "no operations");
    refuse(&op, "less", -1, "less than none");
    refuse(NULL, "null", 1, "operations NULL");
    expect(dt_grad_start(engine, "null", &op, 1, NULL) == DT_ERR_INVALID_ARG,
           "work NULL");
    expect(dt_grad_start(NULL, "null", &op, 1, NULL) == DT_ERR_INVALID_ARG,
           "engine NULL");
}

static void wrong_shapes(void)
{
    int64_t many[17], minus[] = {4, -1},
                      huge[] = {(int64_t)1 << 40, (int64_t)1 << 40};
    for (int d = 0; d < 17; d++)
        many[d] = 1;
    dt_grad_op_t op = right(DT_GRAD_ALLREDUCE);
    op.ndim = 17;
    op.shape = many;
    refuse(&op, "shape", 1, "17 dimensions");
    op.ndim = -1;
    refuse(&op, "shape", 1, "-1 dimensions");
    op.ndim = 2;
    op.shape = minus;
    refuse(&op, "shape", 1, "a dimension below 0");
    op.shape = huge;
    refuse(&op, "shape", 1, "2^80 elements");
    op.shape = NULL;
    refuse(&op, "shape", 1, "shape NULL");
    static const dt_grad_kind_t kinds[] = {DT_GRAD_ALLGATHER, DT_GRAD_ALLTOALL,
                                           DT_GRAD_REDUCESCATTER};
    for (int k = 0; k < 3; k++) {
        op = right(kinds[k]);
        op.ndim = 0;
        refuse(&op, "scalar", 1, "a scalar has no rows");
    }
}

static void wrong_splits(void)
{
    int64_t splits[MOST_RANKS] = {0}, odd[] = {2 * dt_size() + 1};
    dt_grad_op_t op = right(DT_GRAD_ALLTOALL);
    op.splits = splits;
    refuse(&op, "splits", 1, "splits that are less than the rows");
    splits[0] = 5;
    refuse(&op, "splits", 1, "splits that are more");
    splits[0] = -1;
    splits[dt_size() - 1] += dt_size() > 1 ? 5 : 0;
    refuse(&op, "splits", 1, "a split below 0");
    splits[0] = splits[dt_size() - 1] = INT64_MAX;
    refuse(&op, "splits", 1, "splits that overflow");
    op.splits = NULL;
    op.shape = odd;
    if (dt_size() > 1)
        refuse(&op, "splits", 1, "rows that cannot be the same for all");
}

static void wrong_buffers(void)
{
    dt_grad_op_t op = right(DT_GRAD_ALLREDUCE);
    op.in = NULL;
    refuse(&op, "buffer", 1, "in NULL");
    op = right(DT_GRAD_ALLREDUCE);
    op.out = NULL;
    refuse(&op, "buffer", 1, "out NULL");
    op = right(DT_GRAD_ALLGATHER);
    op.out = numbers;
    refuse(&op, "buffer", 1, "out of an allgather");
    op = right(DT_GRAD_BROADCAST);
    op.root = dt_rank();
    op.in = NULL;
    refuse(&op, "buffer", 1, "in NULL at the root");
}

static void wrong_fields(void)
{
    dt_grad_op_t op = right(DT_GRAD_BROADCAST);
    op.root = -1;
    refuse(&op, "root", 1, "root -1");
    op.root = dt_size();
    refuse(&op, "root", 1, "a root that is no rank");
    op = right(DT_GRAD_ALLREDUCE);
    op.kind = (dt_grad_kind_t)6;
    refuse(&op, "kind", 1, "no kind");
    op.kind = (dt_grad_kind_t)-1;
    refuse(&op, "kind", 1, "kind -1");
    op = right(DT_GRAD_ALLREDUCE);
    op.dtype = op.wire = (dt_dtype_t)10;
    refuse(&op, "type", 1, "no type");
    op = right(DT_GRAD_ALLREDUCE);
    op.op = 6;
    refuse(&op, "op", 1, "no reduction");
    op.op = -1;
    refuse(&op, "op", 1, "reduction -1");
    op = right(DT_GRAD_ALLREDUCE);
    op.element_bytes = 4;
    refuse(&op, "element", 1, "element_bytes of a reduction");
    op = right(DT_GRAD_ALLREDUCE);
    op.set = 4711;
    refuse(&op, "set", 1, "no such set");
    op.set = -1;
    refuse(&op, "set", 1, "set -1");
}

/* What the header does not allow, in other words. */
static void unsupported(void)
{
    dt_grad_op_t op = right(DT_GRAD_REDUCESCATTER);
    op.op = DT_OP_MAX;
    reject(&op, "the maximum by reducescatter");
    op = right(DT_GRAD_REDUCESCATTER);
    op.op = DT_GRAD_ADASUM;
    reject(&op, "adaptive summation by reducescatter");
    op = right(DT_GRAD_ALLREDUCE);
    op.op = DT_GRAD_ADASUM;
    op.dtype = op.wire = DT_DTYPE_I32;
    reject(&op, "adaptive summation of integers");
    op = right(DT_GRAD_ALLREDUCE);
    op.dtype = DT_DTYPE_I32;
    op.wire = DT_DTYPE_F16;
    reject(&op, "integers as F16");
    op.dtype = DT_DTYPE_F32;
    op.wire = DT_DTYPE_F64;
    reject(&op, "F32 as F64");
    op.wire = DT_DTYPE_I8;
    reject(&op, "F32 as I8");
}

/* The first of the name is under way, as only this rank has started it. */
static void twice(bool me)
{
    float in = 1, out = 0;
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 0, NULL, &in, &out);
    dt_grad_work_t work = NULL;
    if (me && dt_size() > 1) {
        expect(dt_grad_start(engine, "twice", &op, 1, &work) == DT_SUCCESS,
               "start");
        refuse(&op, "twice", 1, "the name is under way");
        expect(dt_grad_test(work) == DT_IN_PROGRESS, "the first one goes on");
        meet();
        expect(finish(work).rc == DT_SUCCESS && out == (float)dt_size(),
               "the first one's sum");
    } else {
        meet();
        expect(run_op(engine, "twice", &op) == DT_SUCCESS, "twice");
    }
}

/* Outputs that there are not. */
static void wrong_outputs(void)
{
    float in[2] = {1, 2}, out[2 * MOST_RANKS];
    const int64_t two[] = {2};
    dt_grad_work_t work = NULL;
    int ndim;
    dt_grad_op_t op = op_of(DT_GRAD_ALLGATHER, DT_DTYPE_F32, 1, two, in, NULL);
    expect(dt_grad_start(engine, "output", &op, 1, &work) == DT_SUCCESS &&
               dt_grad_wait(work, -1) == DT_SUCCESS,
           "allgather");
    expect(dt_grad_output(work, 1, &ndim, NULL, NULL) == DT_ERR_INVALID_ARG,
           "operation 1 of 1");
    expect(dt_grad_output(work, -1, &ndim, NULL, NULL) == DT_ERR_INVALID_ARG,
           "operation -1");
    expect(dt_grad_take(work, 1, out) == DT_ERR_INVALID_ARG, "take 1 of 1");
    expect(dt_grad_take(work, 0, NULL) == DT_ERR_INVALID_ARG, "take to NULL");
    expect(dt_grad_take(work, 0, out) == DT_SUCCESS, "take");
    expect(dt_grad_take(work, 0, out) == DT_ERR_INVALID_ARG, "take twice");
    dt_grad_free(work);
    op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, two, in, out);
    expect(dt_grad_start(engine, "output", &op, 1, &work) == DT_SUCCESS &&
               dt_grad_wait(work, -1) == DT_SUCCESS,
           "allreduce");
    expect(dt_grad_take(work, 0, out) == DT_ERR_INVALID_ARG,
           "take of an allreduce");
    dt_grad_free(work);
}

static void nothing_at_all(void)
{
    int n = 1, set;
    dt_grad_plan_t plan;
    expect(dt_grad_test(NULL) == DT_ERR_INVALID_ARG, "test NULL");
    expect(dt_grad_wait(NULL, 1) == DT_ERR_INVALID_ARG, "wait NULL");
    expect(dt_grad_output(NULL, 0, &n, NULL, NULL) == DT_ERR_INVALID_ARG,
           "output NULL");
    expect(dt_grad_take(NULL, 0, &n) == DT_ERR_INVALID_ARG, "take NULL");
    expect(dt_grad_join(NULL, 0, &n) == DT_ERR_INVALID_ARG, "join NULL");
    expect(dt_grad_set_add(NULL, &n, 1, &set) == DT_ERR_INVALID_ARG,
           "set_add NULL");
    expect(dt_grad_set_rank(NULL, 0) == DT_ERR_INVALID_ARG, "set_rank NULL");
    expect(dt_grad_sets(NULL, &n, &n) == DT_ERR_INVALID_ARG, "sets NULL");
    expect(dt_grad_plan_create(NULL, 0, &plan) == DT_ERR_INVALID_ARG,
           "plan_create NULL");
    expect(dt_grad_plan_submit(NULL, 0, &n, &n) == DT_ERR_INVALID_ARG,
           "plan_submit NULL");
    expect(dt_grad_plan_step(NULL, 0) == DT_ERR_INVALID_ARG, "plan_step NULL");
    expect(dt_grad_stats(NULL, NULL) == DT_ERR_INVALID_ARG, "stats NULL");
    expect(dt_grad_timeline(NULL, NULL) == DT_ERR_INVALID_ARG, "timeline NULL");
    expect(dt_grad_plan_destroy(NULL) == DT_SUCCESS, "plan_destroy NULL");
    expect(dt_grad_close(NULL) == DT_SUCCESS, "close NULL");
}

/* This rank is none of the set. */
static void stranger(int set)
{
    dt_grad_op_t ops[2] = {right(DT_GRAD_ALLREDUCE), right(DT_GRAD_ALLREDUCE)};
    if (dt_grad_set_rank(engine, set) < 0) {
        ops[0].set = set;
        refuse(ops, "stranger", 1, "not in the set");
        return;
    }
    ops[1].set = set;
    refuse(ops, "two sets", 2, "one call, two sets");
    ops[0].set = set;
    expect(run_op(engine, "member", ops) == DT_SUCCESS, "in the set");
}

void mode_local(int argc, char **argv)
{
    const int alone[] = {0};
    int set = -1;
    (void)argc, (void)argv;
    engine = begin_engine();
    for (int who = 0; who < dt_size(); who++) {
        bool me = dt_rank() == who;
        twice(me);
        if (me) {
            wrong_names();
            wrong_shapes();
            wrong_splits();
            wrong_buffers();
            wrong_fields();
            unsupported();
            nothing_at_all();
        }
        expect_alive(engine, "root");
        expect_alive(engine, "rejected");
        expect_alive(engine, NULL);
    }
    wrong_outputs();
    if (dt_size() > 1) {
        expect(dt_grad_set_add(engine, alone, 1, &set) == DT_SUCCESS, "a set");
        stranger(set);
    }
    end_engine(engine);
}

/* ---- its end, and another beginning ---- */

void open_before_init(void)
{
    dt_grad_t grad = NULL;
    expect(dt_grad_open(NULL, &grad) == DT_ERR_NOT_INITIALIZED && !grad,
           "open before dt_init");
}

/* What only this rank has started ends when another one leaves. */
static void close_before(bool lonely)
{
    int32_t x = 1;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &x);
    dt_grad_work_t work = NULL, other = NULL;
    dt_grad_t grad = begin_engine();
    if (lonely) {
        expect(dt_grad_start(grad, "lonely", &op, 1, &work) == DT_SUCCESS &&
                   dt_grad_start(grad, "left", &op, 1, &other) == DT_SUCCESS,
               "start");
        struct ended ended = finish(work);
        expect(ended.rc == (dt_size() > 1 ? DT_ERR_INVALID_ARG : DT_SUCCESS),
               "what cannot complete: %s", dt_strerror(ended.rc));
        expect(dt_size() == 1 || ended.text[0], "a text");
    }
    expect(dt_grad_close(grad) == DT_SUCCESS, "close with work");
}

static dt_result_t wait_in(dt_grad_t grad, int call)
{
    const int ranks[] = {0};
    int number;
    dt_grad_plan_t plan;
    switch (call) {
    case 0:
        return dt_grad_join(grad, -1, &number);
    case 1:
        return dt_grad_set_add(grad, ranks, 1, &number);
    default:
        return dt_grad_plan_create(grad, DT_GRAD_WORLD, &plan);
    }
}

/* A call that waits for all ranks ends when one of them leaves. */
static void close_during(int call)
{
    dt_grad_t grad = begin_engine();
    if (dt_size() > 1 && dt_rank() < dt_size() - 1) {
        dt_result_t rc = wait_in(grad, call);
        expect(rc == DT_ERR_INVALID_ARG, "call %d of those who stay: %s", call,
               dt_strerror(rc));
    }
    expect(dt_grad_close(grad) == DT_SUCCESS, "close");
}

/* So does a gradient of a plan that stands. */
static void close_amid_step(void)
{
    float x[2] = {1, 2};
    int id[2];
    dt_grad_plan_t plan = NULL;
    const dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 0, NULL, NULL, NULL);
    dt_grad_t grad = begin_engine();
    expect(dt_grad_plan_create(grad, DT_GRAD_WORLD, &plan) == DT_SUCCESS &&
               dt_grad_plan_tensor(plan, "a", &op, &id[0]) == DT_SUCCESS &&
               dt_grad_plan_tensor(plan, "b", &op, &id[1]) == DT_SUCCESS,
           "a plan");
    for (int step = 0; step < 3; step++) {
        for (int k = 0; k < 2; k++)
            dt_grad_plan_submit(plan, id[k], &x[k], &x[k]);
        expect(dt_grad_plan_step(plan, -1) == DT_SUCCESS, "step");
    }
    if (dt_rank() == 0 && dt_size() > 1) {
        for (int k = 0; k < 2; k++)
            dt_grad_plan_submit(plan, id[k], &x[k], &x[k]);
        dt_result_t rc = dt_grad_plan_wait(plan, id[0], -1);
        expect(rc == DT_ERR_INVALID_ARG, "a gradient of who stays: %s",
               dt_strerror(rc));
    }
    expect(dt_grad_close(grad) == DT_SUCCESS, "close");
}

/* A second engine beside the first: both work, or there is none. */
static void open_twice(void)
{
    dt_grad_t one = begin_engine(), two = NULL;
    dt_result_t rc = dt_grad_open(NULL, &two);
    expect(rc == DT_SUCCESS || (rc == DT_ERR_INVALID_ARG && !two),
           "a second engine: %s", dt_strerror(rc));
    expect_same((uint64_t)(int64_t)rc, "whether there is a second one");
    if (two)
        expect_alive(two, "second");
    expect_alive(one, "first");
    if (two)
        end_engine(two);
    expect_alive(one, "first");
    end_engine(one);
}

static void other_options(void)
{
    dt_grad_options_t options = {.bucket_bytes = (size_t)1 << 20};
    dt_grad_t grad = NULL;
    if (dt_rank() == 0)
        options.bucket_bytes = (size_t)1 << 21;
    if (dt_size() > 1)
        expect(dt_grad_open(&options, &grad) == DT_ERR_MISMATCH && !grad,
               "options that differ");
    expect(dt_grad_open(NULL, NULL) == DT_ERR_INVALID_ARG, "open to NULL");
    options.bucket_bytes = 1;
    options.first_bucket_bytes = 1;
    expect(dt_grad_open(&options, &grad) == DT_SUCCESS, "small buckets");
    expect_alive(grad, "small");
    end_engine(grad);
}

void mode_close(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 5; i++) {
        dt_grad_t grad = begin_engine();
        if (i % 2)
            expect_alive(grad, NULL);
        end_engine(grad);
    }
    dt_grad_t grad = begin_engine();
    expect(dt_finalize() == DT_ERR_INVALID_ARG, "dt_finalize before the close");
    expect_alive(grad, "not finalized");
    end_engine(grad);
    close_before(dt_rank() == 0);
    close_before(dt_rank() == dt_size() - 1);
    for (int call = 0; call < 3; call++)
        close_during(call);
    close_amid_step();
    open_twice();
    other_options();
}

/* ---- a process that was forked ---- */

static int in_child(dt_grad_t grad, dt_grad_work_t work, dt_grad_plan_t plan)
{
    int32_t x = 1;
    int n = 0, bad = 0;
    dt_grad_stats_t stats;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &x);
    dt_grad_work_t mine = NULL;
    const dt_result_t refused[] = {
        dt_grad_start(grad, "child", &op, 1, &mine),
        dt_grad_wait(work, 5),
        dt_grad_test(work),
        dt_grad_join(grad, 0, &n),
        dt_grad_plan_submit(plan, 0, &x, &x),
        dt_grad_plan_step(plan, 5),
        dt_grad_set_add(grad, &n, 1, &n),
        dt_grad_stats(grad, &stats),
        dt_grad_close(grad),
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (refused[i] != DT_ERR_INVALID_ARG) {
            fprintf(stderr, "rank %d: call %zu of a child: %s\n", dt_rank(), i,
                    dt_strerror(refused[i]));
            bad = 1;
        }
    return bad;
}

void mode_fork(int argc, char **argv)
{
    int32_t x = 1, out = 0;
    int id, status = -1;
    dt_grad_plan_t plan = NULL;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_I32, 0, NULL, &x, &out);
    dt_grad_work_t work = NULL;
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS &&
               dt_grad_plan_tensor(plan, "t", &op, &id) == DT_SUCCESS,
           "a plan");
    expect(dt_grad_start(grad, "before", &op, 1, &work) == DT_SUCCESS, "start");
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(in_child(grad, work, plan));
    }
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0,
           "the child ends with %d", status);
    expect(finish(work).rc == DT_SUCCESS && out == dt_size(),
           "what began before");
    expect_alive(grad, "child");
    expect(dt_grad_plan_submit(plan, id, &x, &out) == DT_SUCCESS &&
               dt_grad_plan_step(plan, -1) == DT_SUCCESS,
           "a step");
    expect(dt_grad_plan_destroy(plan) == DT_SUCCESS, "destroy");
    end_engine(grad);
}

/* ---- the timeline ---- */

/* Into a file for each rank; its JSON is looked at by errors.t. */
void mode_timeline(int argc, char **argv)
{
    char path[4096];
    dt_grad_plan_t plan = NULL;
    int id;
    float x = 1;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 0, NULL, &x, &x);
    snprintf(path, sizeof(path), "%s.%d", argc > 0 ? argv[0] : "timeline",
             dt_rank());
    dt_grad_t grad = begin_engine();
    expect(dt_grad_timeline(grad, "/nowhere/at/all") == DT_ERR_IO,
           "no such folder");
    expect(dt_grad_timeline(grad, path) == DT_SUCCESS, "begin");
    expect(dt_grad_timeline(grad, path) == DT_ERR_INVALID_ARG, "there is one");
    expect_alive(grad, "odd \"name\" \\ \n\x01");
    expect_alive(grad, "plain");
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS &&
               dt_grad_plan_tensor(plan, "layer", &op, &id) == DT_SUCCESS,
           "plan");
    for (int step = 0; step < 4; step++)
        expect(dt_grad_plan_submit(plan, id, &x, &x) == DT_SUCCESS &&
                   dt_grad_plan_step(plan, -1) == DT_SUCCESS,
               "step");
    expect(dt_grad_timeline(grad, NULL) == DT_SUCCESS, "end");
    expect_alive(grad, "after");
    end_engine(grad);
}
