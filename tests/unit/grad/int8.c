/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* int8.c - gradients of a plan that go in 8 bits per element, with error
 * feedback. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "model.h"

enum { TENSORS = 8, MOST = 5000, BLOCK = 128 };

static const int64_t counts[TENSORS] = {1, 127, 128, 129, MOST, 0, 1000, 300};

struct run {
    dt_grad_t grad;
    dt_grad_plan_t plan;
    dt_dtype_t wire; /* of tensor 4; the others go as I8 */
    int ids[TENSORS];
    float in[TENSORS][MOST], out[TENSORS][MOST];
    double wide[MOST]; /* tensor 6 is of F64 */
};

static bool is_wide(int k)
{
    return k == 6;
}

static dt_grad_op_t gradient(const struct run *run, int k)
{
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, is_wide(k) ? DT_DTYPE_F64 : DT_DTYPE_F32, 1,
              &counts[k], NULL, NULL);
    op.wire = k == 4 ? run->wire : DT_DTYPE_I8;
    op.op = k % 3 == 1 ? DT_OP_AVG : DT_OP_SUM;
    if (k == 3) {
        op.prescale = 0.5;
        op.postscale = 4;
    }
    return op;
}

static void name_all(struct run *run)
{
    for (int k = 0; k < TENSORS; k++) {
        char name[32];
        dt_grad_op_t op = gradient(run, k);
        snprintf(name, sizeof(name), "layer.%d", k);
        dt_result_t rc =
            dt_grad_plan_tensor(run->plan, name, &op, &run->ids[k]);
        expect(rc == DT_SUCCESS, "name %s: %s", name, dt_strerror(rc));
    }
}

static struct run *begin_run(void)
{
    const dt_grad_options_t options = {.bucket_bytes = 4000,
                                       .first_bucket_bytes = 300};
    struct run *run = memory_get(sizeof(*run));
    run->wire = DT_DTYPE_I8;
    expect(dt_grad_open(&options, &run->grad) == DT_SUCCESS, "open");
    expect(dt_grad_plan_create(run->grad, 0, &run->plan) == DT_SUCCESS, "plan");
    name_all(run);
    return run;
}

static void end_run(struct run *run)
{
    expect(dt_grad_plan_destroy(run->plan) == DT_SUCCESS, "destroy");
    end_engine(run->grad);
    memory_put(run);
}

static dt_result_t submit(struct run *run, int k)
{
    void *in = run->in[k], *out = k % 2 ? run->in[k] : run->out[k];
    if (is_wide(k)) {
        for (int64_t i = 0; i < counts[k]; i++)
            run->wide[i] = run->in[k][i];
        in = out = run->wide;
    }
    return dt_grad_plan_submit_on(run->plan, run->ids[k], in, out,
                                  memory_stream());
}

/* Submit all in an order that `order` draws, and end the step: the results are
 * in out. apart: wait for the first before the others are submitted, which the
 * plan cannot follow. */
static void step(struct run *run, uint64_t *order, bool apart)
{
    int places[TENSORS];
    draw_order(order, places, TENSORS);
    if (apart) {
        expect(submit(run, 4) == DT_SUCCESS, "submit the first");
        expect(dt_grad_plan_wait(run->plan, run->ids[4], -1) == DT_SUCCESS,
               "wait for it alone");
    }
    for (int i = 0; i < TENSORS; i++)
        if (!apart || places[i] != 4)
            expect(submit(run, places[i]) == DT_SUCCESS, "submit %d",
                   places[i]);
    dt_result_t rc = dt_grad_plan_step(run->plan, -1);
    expect(rc == DT_SUCCESS, "step: %s", dt_strerror(rc));
    for (int k = 0; k < TENSORS; k++)
        for (int64_t i = 0; i < counts[k] && (is_wide(k) || k % 2); i++)
            run->out[k][i] = is_wide(k) ? (float)run->wide[i] : run->in[k][i];
}

/* ---- numbers that 8 bits can hold ---- */

/* Each block has 127, so that its scale is the rank's factor. */
static int whole(int k, int64_t i, int number)
{
    return i % BLOCK == 0 ? 127 : (int)(i * 7 + k + 3 * number) % 255 - 127;
}

static void fill_whole(struct run *run, int number)
{
    for (int k = 0; k < TENSORS; k++)
        for (int64_t i = 0; i < counts[k]; i++)
            run->in[k][i] = (float)((dt_rank() + 1) * whole(k, i, number));
}

/* The sum of the first `ranks` ranks. */
static void expect_whole(const struct run *run, int number, int ranks)
{
    for (int k = 0; k < TENSORS; k++) {
        const dt_grad_op_t op = gradient(run, k);
        double factor = op.prescale * op.postscale * ranks * (ranks + 1) / 2;
        if (op.op == DT_OP_AVG)
            factor /= dt_size();
        for (int64_t i = 0; i < counts[k]; i++) {
            float right = (float)(factor * whole(k, i, number));
            if (run->out[k][i] == right)
                continue;
            expect(false, "step %d, tensor %d, element %" PRId64 ": %g not %g",
                   number, k, i, (double)run->out[k][i], (double)right);
            break;
        }
    }
}

static void expect_residual(const struct run *run, int k, bool zero,
                            const char *when)
{
    float residual[MOST];
    bool zeros = true;
    expect(dt_grad_plan_residual(run->plan, run->ids[k], residual,
                                 (size_t)counts[k]) == DT_SUCCESS,
           "read a residual");
    for (int64_t i = 0; i < counts[k]; i++)
        zeros = zeros && residual[i] == 0;
    expect(zeros == zero, "tensor %d %s: the residual is %szero", k, when,
           zeros ? "" : "not ");
}

static uint64_t elements(void)
{
    uint64_t sum = 0;
    for (int k = 0; k < TENSORS; k++)
        sum += (uint64_t)counts[k];
    return sum;
}

static void expect_small(const dt_grad_stats_t *before,
                         const dt_grad_stats_t *after, unsigned steps)
{
    uint64_t wire = after->wire_bytes - before->wire_bytes;
    expect(after->rounds == before->rounds, "nothing was negotiated");
    expect(after->breaks == before->breaks, "the plan was not given up");
    if (dt_size() > 1)
        expect(wire < 2 * steps * elements(),
               "%" PRIu64 " bytes in %u steps, less than f16's %" PRIu64, wire,
               steps, 2 * steps * elements());
}

/* The last rank has joined; the others go on. */
static void join_amid(struct run *run, uint64_t *order, int number)
{
    int last = -1, n = dt_size();
    if (n > 1 && dt_rank() < n - 1) {
        fill_whole(run, number);
        step(run, order, false);
        expect_whole(run, number, n - 1);
    }
    expect(dt_grad_join(run->grad, -1, &last) == DT_SUCCESS, "join");
}

void mode_int8(int argc, char **argv)
{
    uint64_t order = 77 + (uint64_t)dt_rank();
    struct run *run = begin_run();
    (void)argc, (void)argv;
    for (int number = 0; number < 3; number++) {
        fill_whole(run, number);
        step(run, &order, false);
        expect_whole(run, number, dt_size());
    }
    dt_grad_stats_t before = stats_of(run->grad);
    for (int number = 3; number < 12; number++) {
        fill_whole(run, number);
        step(run, &order, false);
        expect_whole(run, number, dt_size());
    }
    dt_grad_stats_t after = stats_of(run->grad);
    expect_small(&before, &after, 9);
    expect(after.held_bytes >= 4 * elements(), "residuals are counted");
    for (int k = 0; k < TENSORS; k++)
        expect_residual(run, k, true, "after what 8 bits can hold");
    fill_whole(run, 12);
    step(run, &order, true);
    expect_whole(run, 12, dt_size());
    join_amid(run, &order, 13);
    end_run(run);
}

/* ---- the same bits ---- */

static void fill_inexact(struct run *run, int number)
{
    for (int k = 0; k < TENSORS; k++)
        for (int64_t i = 0; i < counts[k]; i++)
            run->in[k][i] =
                1.0F / (float)((i * 5 + number) % 91 + k + 1 + 3 * dt_rank());
}

/* A new plan with what a checkpoint would hold of the old. */
static void restart(struct run *run)
{
    static float saved[TENSORS][MOST];
    for (int k = 0; k < TENSORS; k++)
        expect(dt_grad_plan_residual(run->plan, run->ids[k], saved[k],
                                     (size_t)counts[k]) == DT_SUCCESS,
               "save");
    expect(dt_grad_plan_destroy(run->plan) == DT_SUCCESS, "destroy");
    expect(stats_of(run->grad).held_bytes == 0, "all memory is free");
    expect(dt_grad_plan_create(run->grad, 0, &run->plan) == DT_SUCCESS, "plan");
    name_all(run);
    for (int k = 0; k < TENSORS; k++)
        expect(dt_grad_plan_restore(run->plan, run->ids[k], saved[k],
                                    (size_t)counts[k]) == DT_SUCCESS,
               "restore");
}

/* A gradient that the plan does not have, in one step: neither that step nor
 * the next is as planned. */
static void submit_new(struct run *run)
{
    static float x[3];
    const int64_t shape[] = {3};
    const dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, NULL, NULL);
    int id = -1;
    expect(dt_grad_plan_tensor(run->plan, "new", &op, &id) == DT_SUCCESS &&
               dt_grad_plan_submit(run->plan, id, x, x) == DT_SUCCESS,
           "a new gradient");
}

/* int8-bits SEED [restart | break]: prints a number of all results. */
void mode_int8_bits(int argc, char **argv)
{
    uint64_t seed = argc > 0 ? strtoull(argv[0], NULL, 10) : 1;
    uint64_t order = 1000 * seed + (uint64_t)dt_rank();
    uint64_t number = 14695981039346656037u;
    const char *how = argc > 1 ? argv[1] : "";
    struct run *run = begin_run();
    for (int s = 0; s < 10; s++) {
        if (s == 5 && strcmp(how, "restart") == 0)
            restart(run);
        if (s == 5 && strcmp(how, "break") == 0)
            submit_new(run);
        fill_inexact(run, s);
        step(run, &order, false);
        for (int k = 0; k < TENSORS; k++)
            number = digest(number, run->out[k],
                            (size_t)counts[k] * sizeof(run->out[k][0]));
        expect_same(number, "the sums");
    }
    expect((stats_of(run->grad).breaks > 0) == (*how != 0),
           "the plan was given up as often as it should");
    expect_residual(run, 4, dt_size() == 1, "after what 8 bits cannot hold");
    if (dt_rank() == 0)
        printf("digest %016" PRIx64 "\n", number);
    end_run(run);
}

/* ---- error feedback ---- */

enum { STEPS = 300 };

/* In each block one element of 1, and the others so small that 8 bits beside it
 * are 0. */
static float small(int rank, int64_t i)
{
    float x = i % BLOCK == 0 ? 1.0F : 1e-3F * (float)((i + rank) % 5);
    return (float)(rank + 1) * x;
}

/* In the mean over the steps nothing is lost but what is still in residuals. */
void mode_int8_feedback(int argc, char **argv)
{
    static double sums[MOST];
    uint64_t order = 5 + (uint64_t)dt_rank();
    struct run *run = begin_run();
    int n = dt_size();
    double left = 2.0 * n / 127;
    (void)argc, (void)argv;
    for (int s = 0; s < STEPS; s++) {
        for (int k = 0; k < TENSORS; k++)
            for (int64_t i = 0; i < counts[k]; i++)
                run->in[k][i] = small(dt_rank(), i);
        step(run, &order, false);
        for (int64_t i = 0; i < counts[7]; i++)
            sums[i] += (double)run->out[7][i] * n;
    }
    for (int64_t i = 0; i < counts[7]; i++) {
        double right = 0;
        for (int r = 0; r < n; r++)
            right += (double)small(r, i) * STEPS;
        expect(fabs(sums[i] - right) <= left * n,
               "element %" PRId64 ": %g after %d steps, not %g", i, sums[i],
               STEPS, right);
    }
    end_run(run);
}

/* ---- numbers that are none ---- */

static void expect_block(const struct run *run, int block, bool nan,
                         float value, const char *what)
{
    for (int64_t i = (int64_t)block * BLOCK;
         i < ((int64_t)block + 1) * BLOCK && i < counts[7]; i++) {
        float x = run->out[7][i];
        if (nan ? isnan(x) : x == value)
            continue;
        expect(false, "%s: element %" PRId64 " is %g", what, i, (double)x);
        return;
    }
}

/* A step in which the first block of tensor 7 of rank 0 has one element of
 * this; everything else is 1. */
static void spoil(struct run *run, float element, const char *what)
{
    uint64_t order = 1;
    for (int k = 0; k < TENSORS; k++)
        for (int64_t i = 0; i < counts[k]; i++)
            run->in[k][i] = 1;
    if (dt_rank() == 0)
        run->in[7][3] = element;
    step(run, &order, false);
    if (dt_size() > 1) {
        expect_block(run, 0, true, 0, what);
        expect_block(run, 1, false, 1, what);
        expect_block(run, 2, false, 1, what);
    }
}

static void all_of(struct run *run, float element, float right,
                   const char *what)
{
    uint64_t order = 1;
    for (int k = 0; k < TENSORS; k++)
        for (int64_t i = 0; i < counts[k]; i++)
            run->in[k][i] = element;
    step(run, &order, false);
    for (int block = 0; block < 3; block++)
        expect_block(run, block, isnan(right), right, what);
}

/* A sum is too large, though no number is. */
static void overflow(struct run *run)
{
    uint64_t order = 1;
    for (int k = 0; k < TENSORS; k++)
        for (int64_t i = 0; i < counts[k]; i++)
            run->in[k][i] = 0.9F * FLT_MAX / (float)(1 + i % 3);
    step(run, &order, false);
    for (int block = 0; block < 3 && dt_size() > 1; block++)
        expect_block(run, block, true, 0, "a sum too large");
}

void mode_int8_odd(int argc, char **argv)
{
    struct run *run = begin_run();
    bool alone = dt_size() == 1;
    (void)argc, (void)argv;
    for (int twice = 0; twice < 2; twice++) {
        spoil(run, INFINITY, "infinity");
        all_of(run, 1, 1, "after infinity");
        spoil(run, -INFINITY, "minus infinity");
        spoil(run, NAN, "nan");
        all_of(run, 0, 0, "zero after nan");
        spoil(run, FLT_MAX, "a number too large");
        overflow(run);
        all_of(run, -2, -2, "after it");
        all_of(run, 1e-42F, alone ? 1e-42F : 0, "a tiny number");
        all_of(run, -0.0F, 0, "minus zero");
        all_of(run, 3, 3, "after it all");
    }
    end_run(run);
}

/* ---- calls that are wrong ---- */

static void refuse(dt_result_t rc, const char *what)
{
    expect(rc == DT_ERR_INVALID_ARG || rc == DT_ERR_UNSUPPORTED, "%s: %s", what,
           dt_strerror(rc));
}

static void wrong_calls(struct run *run)
{
    float x[4] = {0};
    const int64_t shape[] = {4};
    int id = -1;
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F16, 1, shape, NULL, NULL);
    op.wire = DT_DTYPE_I8;
    refuse(dt_grad_plan_tensor(run->plan, "half", &op, &id), "f16 as i8");
    op.dtype = DT_DTYPE_I32;
    refuse(dt_grad_plan_tensor(run->plan, "whole", &op, &id), "i32 as i8");
    op.dtype = op.wire = DT_DTYPE_F32;
    expect(dt_grad_plan_tensor(run->plan, "plain", &op, &id) == DT_SUCCESS,
           "f32 as f32");
    refuse(dt_grad_plan_residual(run->plan, id, x, 4), "of a plain gradient");
    refuse(dt_grad_plan_residual(run->plan, 99, x, 4), "of gradient 99");
    refuse(dt_grad_plan_residual(run->plan, run->ids[0], x, 2), "2 elements");
    refuse(dt_grad_plan_restore(run->plan, run->ids[0], NULL, 1), "of NULL");
    expect(submit(run, 0) == DT_SUCCESS, "submit");
    if (dt_size() > 1) {
        refuse(dt_grad_plan_restore(run->plan, run->ids[0], x, 1), "under way");
        expect(strstr(dt_last_error(), "under way") != NULL, "'%s'",
               dt_last_error());
    }
}

/* The last rank sends another type than the others. */
static void disagree(struct run *run)
{
    static const char *const words[] = {"layer.4", "i8 on the wire",
                                        "f32 on the wire", "rank"};
    if (dt_rank() == dt_size() - 1)
        run->wire = DT_DTYPE_F32;
    name_all(run);
    expect(submit(run, 4) == DT_SUCCESS, "submit");
    dt_result_t rc = dt_grad_plan_step(run->plan, -1);
    expect(rc == DT_ERR_MISMATCH, "i8 here and f32 there: %s", dt_strerror(rc));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        expect(strstr(dt_last_error(), words[i]) != NULL, "'%s' has no '%s'",
               dt_last_error(), words[i]);
    run->wire = DT_DTYPE_I8;
    name_all(run);
}

void mode_int8_wrong(int argc, char **argv)
{
    uint64_t order = 3;
    struct run *run = begin_run();
    (void)argc, (void)argv;
    for (int r = 0; r < dt_size(); r++) {
        if (r == dt_rank())
            wrong_calls(run);
        meet();
    }
    expect(dt_grad_plan_step(run->plan, -1) == DT_SUCCESS, "step");
    for (int again = 0; again < 2 && dt_size() > 1; again++) {
        disagree(run);
        for (int number = 0; number < 3; number++) {
            fill_whole(run, number);
            step(run, &order, false);
            expect_whole(run, number, dt_size());
        }
    }
    end_run(run);
}
