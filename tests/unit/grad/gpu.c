/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu.c - tensors on the test driver's GPU: the same bits as on the host, in
 * the order of the stream, and what is refused. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"

/* ---- memory.h ---- */

static void must(int code, const char *what)
{
    if (!code)
        return;
    fprintf(stderr, "rank %d: %s: code %d of the test driver\n", dt_rank(),
            what, code);
    exit(3);
}

static void use_gpu(int device)
{
    struct dt_cu_context *context;
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, device),
         "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void *get_on(int device, size_t len)
{
    dt_cu_ptr ptr;
    use_gpu(device);
    must(cuMemAlloc_v2(&ptr, len ? len : 1), "cuMemAlloc");
    void *memory = (void *)(uintptr_t)ptr;
    memset(memory, 0, len);
    return memory;
}

void *memory_get(size_t len)
{
    return get_on(0, len);
}

void memory_put(void *memory)
{
    use_gpu(0);
    must(cuMemFree_v2((dt_cu_ptr)(uintptr_t)memory), "cuMemFree");
}

dt_stream_t memory_stream(void)
{
    static dt_stream_t stream;
    use_gpu(0);
    if (!stream)
        must(cuStreamCreate(&stream, 1), "cuStreamCreate");
    return stream;
}

/* ---- the same bits as on the host ---- */

enum { COUNT = 3001 };

struct kind {
    dt_dtype_t dtype, wire;
};

static const struct kind kinds[] = {
    {DT_DTYPE_I32, DT_DTYPE_I32}, {DT_DTYPE_I64, DT_DTYPE_I64},
    {DT_DTYPE_F16, DT_DTYPE_F16}, {DT_DTYPE_BF16, DT_DTYPE_BF16},
    {DT_DTYPE_F32, DT_DTYPE_F32}, {DT_DTYPE_F64, DT_DTYPE_F64},
    {DT_DTYPE_F32, DT_DTYPE_F16}, {DT_DTYPE_F32, DT_DTYPE_BF16},
    {DT_DTYPE_F64, DT_DTYPE_F16}, {DT_DTYPE_F64, DT_DTYPE_BF16},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), FACTORS = 3, ALL = KINDS * 6 };

static const double factors[FACTORS][2] = {{1, 1}, {0.3, 1}, {0.7, 3.3}};

/* Numbers that round, a few that are special. */
static void fill(void *buf, dt_dtype_t dtype, uint64_t *seed)
{
    for (size_t i = 0; i < COUNT; i++) {
        double value = ((double)draw(seed, 2000001) - 1e6) / 1031;
        if (dtype == DT_DTYPE_F32 || dtype == DT_DTYPE_F64)
            value = i % 97 == 3 ? 1e30 : i % 97 == 4 ? -1.0 / 0.0 : value;
        value_put(buf, i, dtype, value);
    }
}

static void name_kind(dt_grad_plan_t plan, int k, int *id)
{
    const int64_t shape[] = {COUNT};
    const struct kind *kind = &kinds[k / 6];
    char name[32];
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, kind->dtype, 1, shape, NULL, NULL);
    op.wire = kind->wire;
    op.op = k % 2 ? DT_OP_AVG : DT_OP_SUM;
    op.prescale = factors[k % 6 / 2][0];
    op.postscale = factors[k % 6 / 2][1];
    snprintf(name, sizeof(name), "kind.%d", k);
    expect(dt_grad_plan_tensor(plan, name, &op, id) == DT_SUCCESS, "%s", name);
}

/* A step on the host, or on the GPU. */
static void step(dt_grad_plan_t plan, const int *ids, char *in[ALL],
                 char *out[ALL], dt_stream_t stream)
{
    for (int k = 0; k < ALL; k++)
        expect(dt_grad_plan_submit_on(plan, ids[k], in[k], out[k], stream) ==
                   DT_SUCCESS,
               "submit %d: %s", k, dt_last_error());
    dt_result_t rc = dt_grad_plan_step(plan, -1);
    expect(rc == DT_SUCCESS, "step: %s", dt_last_error());
}

/* The second step of each plan goes by buckets. */
void mode_same_bits(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char *in[2][ALL], *out[2][ALL];
    const size_t len = COUNT * sizeof(double);
    dt_grad_t grad = begin_engine();
    dt_grad_plan_t plans[2];
    int ids[2][ALL];
    for (int p = 0; p < 2; p++) {
        expect(dt_grad_plan_create(grad, 0, &plans[p]) == DT_SUCCESS, "plan");
        for (int k = 0; k < ALL; k++) {
            in[p][k] = p ? memory_get(len) : calloc(1, len);
            out[p][k] = p ? memory_get(len) : calloc(1, len);
            name_kind(plans[p], k, &ids[p][k]);
        }
    }
    uint64_t seed = 7 + (uint64_t)dt_rank();
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < ALL; k++) {
            fill(in[0][k], kinds[k / 6].dtype, &seed);
            memcpy(in[1][k], in[0][k], len);
        }
        step(plans[0], ids[0], in[0], out[0], DT_STREAM_NONE);
        step(plans[1], ids[1], in[1], out[1], memory_stream());
        for (int k = 0; k < ALL; k++)
            expect(!memcmp(out[0][k], out[1][k], len),
                   "step %d: type %d as %d, op %d, factors %g and %g: other "
                   "bits than on the host",
                   i, (int)kinds[k / 6].dtype, (int)kinds[k / 6].wire, k % 2,
                   factors[k % 6 / 2][0], factors[k % 6 / 2][1]);
    }
    dt_grad_stats_t stats;
    expect(dt_grad_stats(grad, &stats) == DT_SUCCESS && stats.buckets > 0,
           "by buckets");
    expect(dt_grad_plan_destroy(plans[1]) == DT_SUCCESS &&
               dt_grad_plan_destroy(plans[0]) == DT_SUCCESS,
           "destroy");
    end_engine(grad);
    for (int k = 0; k < ALL; k++) {
        free(in[0][k]);
        free(out[0][k]);
        memory_put(in[1][k]);
        memory_put(out[1][k]);
    }
}

/* ---- the order of streams ---- */

static uint32_t *gate;
static uint32_t shut;

/* What comes on the stream now waits until gate_open. */
static void gate_shut(dt_stream_t stream)
{
    void *page;
    if (!gate) {
        must(cuMemHostAlloc(&page, 4096, 3), "cuMemHostAlloc");
        gate = page;
    }
    must(cuStreamWaitValue32_v2(stream, (dt_cu_ptr)(uintptr_t)gate, ++shut, 0),
         "cuStreamWaitValue32");
}

static void gate_open(void)
{
    __atomic_store_n(gate, shut, __ATOMIC_RELEASE);
}

static void copy(void *dst, const void *src, size_t len, dt_stream_t stream)
{
    must(cuMemcpyAsync((dt_cu_ptr)(uintptr_t)dst, (dt_cu_ptr)(uintptr_t)src,
                       len, stream),
         "cuMemcpyAsync");
}

static bool is_sum(const float *x, int step)
{
    float sum = 0;
    for (int r = 0; r < dt_size(); r++)
        sum += (float)(r + step + 1);
    for (size_t i = 0; i < COUNT; i++)
        if (x[i] != sum)
            return false;
    return true;
}

/* Tensors are made on a stream after they were submitted. */
void mode_streams(int argc, char **argv)
{
    (void)argc, (void)argv;
    const int64_t shape[] = {COUNT};
    const size_t len = COUNT * sizeof(float);
    dt_grad_t grad = begin_engine();
    dt_grad_plan_t plan = NULL;
    float *made = memory_get(len), *x = memory_get(len);
    float *y = memory_get(len);
    dt_stream_t stream = memory_stream();
    int id;
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS, "plan");
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, y, y);
    expect(dt_grad_plan_tensor(plan, "x", &op, &id) == DT_SUCCESS, "name");
    for (int i = 0; i < 4; i++) {
        dt_grad_work_t work = NULL;
        for (size_t k = 0; k < COUNT; k++)
            made[k] = (float)(dt_rank() + i + 1);
        gate_shut(stream);
        copy(x, made, len, stream);
        copy(y, made, len, stream);
        expect(dt_grad_plan_submit_on(plan, id, x, x, stream) == DT_SUCCESS &&
                   dt_grad_start_on(grad, "y", &op, 1, stream, &work) ==
                       DT_SUCCESS,
               "submit: %s", dt_last_error());
        meet();
        expect(dt_grad_test(work) == DT_IN_PROGRESS, "y waits");
        gate_open();
        expect(dt_grad_plan_step(plan, -1) == DT_SUCCESS, "step %d: %s", i,
               dt_last_error());
        expect(finish(work).rc == DT_SUCCESS, "y");
        expect(is_sum(x, i) && is_sum(y, i), "sums of step %d", i);
    }
    expect(dt_grad_plan_destroy(plan) == DT_SUCCESS, "destroy");
    end_engine(grad);
    memory_put(made);
    memory_put(x);
    memory_put(y);
}

/* ---- places ---- */

static void refused(dt_grad_t grad, const void *in, void *out,
                    dt_stream_t stream, const char *text)
{
    const int64_t shape[] = {8};
    dt_grad_work_t work = NULL;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, in, out);
    dt_result_t rc = dt_grad_start_on(grad, "refused", &op, 1, stream, &work);
    expect(rc == DT_ERR_INVALID_ARG && strstr(dt_last_error(), text),
           "wanted '%s', got %s: %s", text, dt_strerror(rc), dt_last_error());
}

/* The first rank's tensor is on the host, those of the others on the GPU. */
static void disagree(dt_grad_t grad)
{
    float *there = memory_get(64), here[16] = {0};
    const int64_t shape[] = {8};
    const bool host = dt_rank() == 0;
    dt_grad_plan_t plan = NULL;
    dt_grad_work_t work = NULL;
    dt_stream_t stream = host ? DT_STREAM_NONE : memory_stream();
    int id;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape,
                            host ? here : there, host ? here : there);
    expect(dt_grad_start_on(grad, "split", &op, 1, stream, &work) == DT_SUCCESS,
           "start");
    struct ended ended = finish(work);
    expect(ended.rc == DT_ERR_MISMATCH && strstr(ended.text, "'split'") &&
               strstr(ended.text, "rank 0 has a tensor in the memory of the "
                                  "host") &&
               strstr(ended.text, "has a tensor on a GPU"),
           "a mismatch: %s", ended.text);
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS &&
               dt_grad_plan_tensor(plan, "moved", &op, &id) == DT_SUCCESS,
           "plan");
    for (int i = 0; i < 4; i++) {
        bool apart = i == 3;
        void *x = apart && host ? here : there;
        expect(dt_grad_plan_submit_on(plan, id, x, x,
                                      apart ? stream : memory_stream()) ==
                   DT_SUCCESS,
               "submit");
        dt_result_t rc = dt_grad_plan_step(plan, -1);
        expect(rc == (apart ? DT_ERR_MISMATCH : DT_SUCCESS), "step %d: %s: %s",
               i, dt_strerror(rc), dt_last_error());
    }
    expect(dt_grad_plan_destroy(plan) == DT_SUCCESS, "destroy");
    memory_put(there);
}

void mode_places(int argc, char **argv)
{
    (void)argc, (void)argv;
    dt_grad_t grad = begin_engine();
    float *there = memory_get(256), here[16];
    refused(grad, there, here, DT_STREAM_NONE, "but out in the memory of the");
    refused(grad, here, here, memory_stream(), "there is a stream");
    refused(grad, (char *)there + 1, there, memory_stream(), "not aligned");
    refused(grad, there + 60, there, memory_stream(), "leave");
    expect_alive(grad, "after");
    if (dt_size() > 1)
        disagree(grad);
    expect_alive(grad, "at the end");
    end_engine(grad);
    memory_put(there);
}

/* ---- tensors that move ---- */

/* A model goes from the host to the GPU and back, with one plan. */
void mode_moves(int argc, char **argv)
{
    (void)argc, (void)argv;
    const int64_t shape[] = {COUNT};
    const size_t len = COUNT * sizeof(float);
    dt_grad_t grad = begin_engine();
    dt_grad_plan_t plan = NULL;
    float *there = memory_get(len), *here = calloc(1, len);
    int id;
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS, "plan");
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, NULL, NULL);
    expect(dt_grad_plan_tensor(plan, "x", &op, &id) == DT_SUCCESS, "name");
    for (int i = 0; i < 15; i++) {
        bool gpu = i / 3 % 2;
        float *x = gpu ? there : here;
        for (size_t k = 0; k < COUNT; k++)
            x[k] = (float)(dt_rank() + i + 1);
        expect(dt_grad_plan_submit_on(plan, id, x, x,
                                      gpu ? memory_stream() : DT_STREAM_NONE) ==
                       DT_SUCCESS &&
                   dt_grad_plan_step(plan, -1) == DT_SUCCESS,
               "step %d: %s", i, dt_last_error());
        expect(is_sum(x, i), "sum of step %d", i);
    }
    dt_grad_stats_t stats = {0};
    dt_grad_stats(grad, &stats);
    expect(stats.breaks == 4, "the plan was given up %llu times, for 4 moves",
           (unsigned long long)stats.breaks);
    expect(dt_grad_plan_destroy(plan) == DT_SUCCESS, "destroy");
    end_engine(grad);
    memory_put(there);
    free(here);
}

/* Gradients on two GPUs of the first rank, on one of the others. */
void mode_devices(int argc, char **argv)
{
    (void)argc, (void)argv;
    const int64_t shape[] = {COUNT};
    const size_t len = COUNT * sizeof(float);
    dt_grad_t grad = begin_engine();
    dt_grad_plan_t plan = NULL;
    float *x[2];
    int id[2];
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS, "plan");
    for (int k = 0; k < 2; k++) {
        dt_grad_op_t op =
            op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, NULL, NULL);
        expect(dt_grad_plan_tensor(plan, k ? "b" : "a", &op, &id[k]) ==
                   DT_SUCCESS,
               "name");
        x[k] = get_on(dt_rank() == 0 ? k : 0, len);
    }
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 2; k++) {
            for (size_t j = 0; j < COUNT; j++)
                x[k][j] = (float)(dt_rank() + i + 1);
            expect(dt_grad_plan_submit(plan, id[k], x[k], x[k]) == DT_SUCCESS,
                   "submit: %s", dt_last_error());
        }
        expect(dt_grad_plan_step(plan, -1) == DT_SUCCESS, "step: %s",
               dt_last_error());
        expect(is_sum(x[0], i) && is_sum(x[1], i), "sums of step %d", i);
    }
    expect(dt_grad_plan_destroy(plan) == DT_SUCCESS, "destroy");
    end_engine(grad);
    memory_put(x[0]);
    memory_put(x[1]);
}

/* ---- what the driver is asked for ---- */

/* Calls that take what others give back. */
static const char *const pairs[][2] = {
    {"cuMemAlloc_v2", "cuMemFree_v2"},
    {"cuMemHostAlloc", "cuMemFreeHost"},
    {"cuEventCreate", "cuEventDestroy_v2"},
    {"cuStreamCreateWithPriority", "cuStreamDestroy_v2"},
};
enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]) };

/* Calls that wait or allocate. */
static int slow_calls(void)
{
    int sum = dt_mock_calls("cuStreamSynchronize") +
              dt_mock_calls("cuCtxSynchronize");
    for (int p = 0; p < PAIRS; p++)
        sum += dt_mock_calls(pairs[p][0]) + dt_mock_calls(pairs[p][1]);
    return sum;
}

static void steps(dt_grad_t grad, float *x)
{
    const int64_t shape[] = {COUNT};
    dt_grad_plan_t plan = NULL;
    int id, before = 0;
    dt_grad_op_t op = op_of(DT_GRAD_ALLREDUCE, DT_DTYPE_F32, 1, shape, x, x);
    expect(dt_grad_plan_create(grad, 0, &plan) == DT_SUCCESS &&
               dt_grad_plan_tensor(plan, "x", &op, &id) == DT_SUCCESS,
           "plan");
    for (int i = 0; i < 12; i++) {
        dt_grad_work_t work = NULL;
        if (i == 4)
            before = slow_calls();
        expect(dt_grad_plan_submit_on(plan, id, x, x, memory_stream()) ==
                       DT_SUCCESS &&
                   dt_grad_plan_step(plan, -1) == DT_SUCCESS,
               "step: %s", dt_last_error());
        expect(dt_grad_start_on(grad, "op", &op, 1, memory_stream(), &work) ==
                       DT_SUCCESS &&
                   finish(work).rc == DT_SUCCESS,
               "operation: %s", dt_last_error());
    }
    expect(slow_calls() == before, "%d calls that wait or allocate in 8 steps",
           slow_calls() - before);
    expect(dt_grad_plan_destroy(plan) == DT_SUCCESS, "destroy");
}

/* Steps neither wait nor allocate, and nothing is left after the engine. */
void mode_steady(int argc, char **argv)
{
    (void)argc, (void)argv;
    float *x = memory_get(COUNT * sizeof(*x));
    int held[2][PAIRS];
    memory_stream();
    for (int i = 0; i < 2; i++) {
        dt_grad_t grad = begin_engine();
        steps(grad, x);
        end_engine(grad);
        for (int p = 0; p < PAIRS; p++)
            held[i][p] =
                dt_mock_calls(pairs[p][0]) - dt_mock_calls(pairs[p][1]);
    }
    for (int p = 0; p < PAIRS; p++)
        expect(held[0][p] == held[1][p], "%s: %d are left", pairs[p][0],
               held[1][p] - held[0][p]);
    memory_put(x);
}
