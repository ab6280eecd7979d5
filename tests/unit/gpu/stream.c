/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stream.c - the module for GPUs on the mock driver: streams, copies, and
 * what the driver refuses. Nothing here may wait for a stream but what says
 * so: most cases hold a stream up until the host lets it go, which it does
 * only after the calls have returned. */
#include <pthread.h>
#include <sched.h>

#include "gpu/cuda/args.h"
#include "child.h"

/* A device, a stream of it, and flags in pinned memory. */
static struct dt_gpu *gpu;
static dt_stream_t stream;
static uint32_t *flag; /* two of them */

static void *pinned(size_t size)
{
    void *ptr;
    SUCCEEDS(gpu->ops->host_alloc(gpu, 0, size, &ptr, &err));
    return ptr;
}

static char *on_device(int device, size_t size)
{
    struct dt_gpu_handle handle;
    void *ptr;
    SUCCEEDS(gpu->ops->share_alloc(gpu, device, size, &ptr, &handle, &err));
    return ptr;
}

static void set_up(void)
{
    gpu = open_mock();
    flag = pinned(2 * sizeof(*flag));
    SUCCEEDS(gpu->ops->stream_create(gpu, 0, &stream, &err));
}

static dt_result_t copy(void *dst, const void *src, size_t len, dt_stream_t on)
{
    const struct dt_gpu_copy plain = {
        .dst = dst, .src = src, .len = len, .rows = 1};
    return gpu->ops->copy(gpu, 0, &plain, on, &err);
}

static void hold(dt_stream_t on)
{
    SUCCEEDS(gpu->ops->await(gpu, 0, &flag[0], 1, on, &err));
}

static void let_go(void)
{
    __atomic_store_n(&flag[0], 1, __ATOMIC_RELEASE);
}

static void finish(dt_stream_t on)
{
    SUCCEEDS(gpu->ops->finish(gpu, 0, on, &err));
}

/* ---- order ---- */

static void case_in_order(void)
{
    set_up();
    char *a = pinned(9), *b = on_device(0, 9), *c = pinned(9);
    int (*calls)(const char *) = CU(dt_mock_calls);
    int waits = calls("cuStreamSynchronize");
    memcpy(a, "12345678", 9);
    hold(stream);
    SUCCEEDS(copy(b, a, 9, stream));
    SUCCEEDS(copy(c, b, 9, stream));
    SUCCEEDS(gpu->ops->signal(gpu, 0, &flag[1], 77, stream, &err));
    NEED(!flag[1] && !*c, "nothing has happened");
    NEED(calls("cuStreamSynchronize") == waits, "nobody waits");
    let_go();
    while (__atomic_load_n(&flag[1], __ATOMIC_ACQUIRE) != 77)
        sched_yield();
    NEED(strcmp(c, "12345678") == 0, "the signal is after the copies");
    finish(stream);
    dt_gpu_unload(gpu);
}

/* Without the order the other stream, which has less to do, were first. */
static void case_two_streams(void)
{
    set_up();
    dt_stream_t other;
    char *a = pinned(9), *b = pinned(9), *c = pinned(9), *d = pinned(9);
    SUCCEEDS(gpu->ops->stream_create(gpu, 0, &other, &err));
    memcpy(a, "12345678", 9);
    hold(stream);
    SUCCEEDS(copy(b, a, 9, stream));
    SUCCEEDS(copy(c, b, 9, stream));
    SUCCEEDS(gpu->ops->order(gpu, 0, stream, other, &err));
    SUCCEEDS(copy(d, c, 9, other));
    /* the same event stands for something else now */
    SUCCEEDS(gpu->ops->order(gpu, 0, NULL, NULL, &err));
    SUCCEEDS(gpu->ops->order(gpu, 0, NULL, other, &err));
    NEED(!*d, "nothing has happened");
    let_go();
    finish(other);
    NEED(strcmp(d, "12345678") == 0, "one after the other");
    dt_gpu_unload(gpu);
}

/* The default stream, which belongs to the device's context, as others. */
static void case_default_stream(void)
{
    set_up();
    char *a = pinned(9), *b = pinned(9);
    memcpy(a, "12345678", 9);
    hold(NULL);
    SUCCEEDS(copy(b, a, 9, NULL));
    SUCCEEDS(gpu->ops->order(gpu, 0, NULL, stream, &err));
    SUCCEEDS(gpu->ops->signal(gpu, 0, &flag[1], 1, stream, &err));
    NEED(!*b && !flag[1], "nothing has happened");
    let_go();
    finish(stream);
    NEED(flag[1] == 1 && strcmp(b, "12345678") == 0, "in order");
    dt_gpu_unload(gpu);
}

/* Values go round at 2^32. */
static void case_values(void)
{
    set_up();
    flag[0] = UINT32_MAX - 1;
    SUCCEEDS(gpu->ops->await(gpu, 0, &flag[0], UINT32_MAX - 5, stream, &err));
    finish(stream);
    SUCCEEDS(gpu->ops->await(gpu, 0, &flag[0], 3, stream, &err));
    SUCCEEDS(gpu->ops->signal(gpu, 0, &flag[1], 9, stream, &err));
    NEED(!flag[1], "3 is later");
    __atomic_store_n(&flag[0], 4, __ATOMIC_RELEASE);
    finish(stream);
    NEED(flag[1] == 9, "4 is later than 3");
    FAILS(gpu->ops->signal(gpu, 0, (uint32_t *)&gpu, 1, stream, &err),
          DT_ERR_INVALID_ARG, "CUDA_ERROR_INVALID_VALUE (1)");
    dt_gpu_unload(gpu);
}

/* A stream that is destroyed does what is on it first. */
static void case_destroy(void)
{
    set_up();
    SUCCEEDS(gpu->ops->signal(gpu, 0, &flag[1], 5, stream, &err));
    gpu->ops->stream_destroy(gpu, stream);
    NEED(flag[1] == 5, "done");
    gpu->ops->stream_destroy(gpu, stream);
    gpu->ops->stream_destroy(gpu, NULL);
    FAILS(gpu->ops->finish(gpu, 0, stream, &err), DT_ERR_INVALID_ARG,
          "CUDA_ERROR_INVALID_HANDLE (400)");
    FAILS(gpu->ops->stream_create(gpu, 7, &stream, &err), DT_ERR_INVALID_ARG,
          "device 7");
    dt_gpu_unload(gpu);
}

/* ---- whose is a stream ---- */

static void case_stream_device(void)
{
    set_up();
    struct dt_cu_context *context, *now;
    struct mock_graph *graph;
    dt_stream_t user;
    bool capturing = true;
    int device = -1;
    SUCCEEDS(gpu->ops->stream_device(gpu, NULL, &device, &capturing, &err));
    NEED(device == 0 && !capturing, "no context");
    USER(cuDevicePrimaryCtxRetain, &context, 1);
    USER(cuCtxSetCurrent, context);
    SUCCEEDS(gpu->ops->stream_device(gpu, NULL, &device, &capturing, &err));
    NEED(device == 1, "the current one");
    SUCCEEDS(gpu->ops->stream_device(gpu, stream, &device, &capturing, &err));
    NEED(device == 0 && !capturing, "its own");
    USER(cuStreamCreate, &user, 0);
    USER(cuStreamBeginCapture_v2, user, 0);
    SUCCEEDS(gpu->ops->stream_device(gpu, user, &device, &capturing, &err));
    NEED(device == 1 && capturing, "%d %d", device, capturing);
    USER(cuStreamEndCapture, user, &graph);
    USER(cuGraphDestroy, graph);
    FAILS(gpu->ops->stream_device(gpu, (dt_stream_t)&user, &device, &capturing,
                                  &err),
          DT_ERR_INVALID_ARG, "INVALID_HANDLE");
    FAILS(gpu->ops->signal(gpu, 0, flag, 1, user, &err), DT_ERR_INVALID_ARG,
          "INVALID_HANDLE"); /* of another device */
    FAILS(gpu->ops->copy(gpu, 9, &(struct dt_gpu_copy){flag, flag + 1, 4, 1},
                         stream, &err),
          DT_ERR_INVALID_ARG, "device 9");
    USER(cuCtxGetCurrent, &now);
    NEED(now == context, "the user's is still the current one");
    int relaxed = 2;
    USER(cuThreadExchangeStreamCaptureMode, &relaxed);
    NEED(relaxed == 0, "and the way in which it captures");
    dt_gpu_unload(gpu);
}

/* What is captured happens when the graph is launched, as often as it is. */
static void case_capture(void)
{
    set_up();
    struct dt_cu_context *context;
    struct mock_graph *graph, *exec;
    dt_stream_t user;
    char *a = pinned(4), *b = on_device(0, 4);
    USER(cuDevicePrimaryCtxRetain, &context, 0);
    USER(cuCtxSetCurrent, context);
    USER(cuStreamCreate, &user, 0);
    USER(cuStreamBeginCapture_v2, user, 0);
    SUCCEEDS(copy(b, a, 4, user));
    USER(cuStreamEndCapture, user, &graph);
    USER(cuGraphInstantiateWithFlags, &exec, graph, 0);
    for (int i = 0; i < 2; i++) {
        memcpy(a, i ? "two" : "one", 4);
        USER(cuGraphLaunch, exec, user);
        finish(user);
        NEED(strcmp(b, i ? "two" : "one") == 0, "launch %d", i);
    }
    USER(cuGraphExecDestroy, exec);
    USER(cuGraphDestroy, graph);
    dt_gpu_unload(gpu);
}

/* ---- copies ---- */

static void case_copies(void)
{
    set_up();
    char *a = pinned(100), *b = on_device(0, 100), *c = on_device(1, 100);
    char own[16] = "fghijklmnop";
    for (int i = 0; i < 100; i++)
        a[i] = (char)i;
    const struct dt_gpu_copy rows[] = {
        {.dst = b,
         .src = a,
         .len = 3,
         .rows = 4,
         .dst_pitch = 5,
         .src_pitch = 10},
        {.dst = c,
         .src = b,
         .len = 5,
         .rows = 4,
         .dst_pitch = 5,
         .src_pitch = 5},
        /* as all ranks' rows of a broadcast: no pitch between sources */
        {.dst = c + 40, .src = a + 50, .len = 2, .rows = 3, .dst_pitch = 2},
        {.dst = NULL, .src = NULL, .len = 0, .rows = 3},
        {.dst = NULL, .src = NULL, .len = 3, .rows = 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        SUCCEEDS(gpu->ops->copy(gpu, 0, &rows[i], stream, &err));
    /* the caller's own memory may change as soon as the copy returns */
    SUCCEEDS(copy(c + 60, own, 12, stream));
    memset(own, 0, sizeof(own));
    SUCCEEDS(copy(own, c + 60, 12, stream));
    NEED(strcmp(own, "fghijklmnop") == 0, "%s", own);
    NEED(memcmp(c, "\0\1\2\0\0\12\13\14\0\0\24\25\26\0\0\36\37\40", 18) == 0,
         "rows");
    NEED(memcmp(c + 40, "2323232", 6) == 0, "the same row");
    FAILS(copy(b, a, 101, stream), DT_ERR_INVALID_ARG, "101 bytes");
    NEED(CU(dt_mock_calls)("cuMemcpy2DAsync_v2") == 1, "one call for rows");
    dt_gpu_unload(gpu);
}

/* Rows farther apart than the driver's copies can have them. */
static void case_far_rows(void)
{
    set_up();
    size_t pitch = (size_t)3 << 30;
    struct dt_cu_context *context;
    dt_cu_ptr ptr;
    USER(cuDevicePrimaryCtxRetain, &context, 0);
    USER(cuCtxSetCurrent, context);
    USER(cuMemAlloc_v2, &ptr, pitch + 10); /* of which little is touched */
    char *a = (char *)(uintptr_t)ptr, *b = pinned(20);
    memcpy(a, "first", 6);
    memcpy(a + pitch, "then", 5);
    const struct dt_gpu_copy far = {.dst = b,
                                    .src = a,
                                    .len = 6,
                                    .rows = 2,
                                    .dst_pitch = 10,
                                    .src_pitch = pitch};
    SUCCEEDS(gpu->ops->copy(gpu, 0, &far, stream, &err));
    finish(stream);
    NEED(!strcmp(b, "first") && !strcmp(b + 10, "then"), "%s", b);
    dt_gpu_unload(gpu);
}

/* ---- the host's own memory, and all streams ---- */

static void case_pinned(void)
{
    set_up();
    struct dt_gpu_place place;
    size_t size = 3 << 16;
    char *own = aligned_alloc(4096, size), *b = on_device(1, 9);
    int (*calls)(const char *) = CU(dt_mock_calls);
    NEED(own, "memory");
    SUCCEEDS(gpu->ops->host_pin(gpu, 0, own, size, &err));
    SUCCEEDS(gpu->ops->locate(gpu, own + 1, size - 1, &place, &err));
    NEED(place.kind == DT_GPU_PINNED, "%d", place.kind);
    FAILS(gpu->ops->host_pin(gpu, 1, own, size, &err), DT_ERR_SYSTEM,
          "pin 196608 bytes at");
    FAILS(gpu->ops->host_pin(gpu, 9, own, size, &err), DT_ERR_INVALID_ARG,
          "device 9");
    hold(stream);
    SUCCEEDS(copy(own, b, 9, stream)); /* does not wait, as it would else */
    let_go();
    finish(stream);
    gpu->ops->host_unpin(gpu, own);
    gpu->ops->host_unpin(gpu, own);
    NEED(calls("cuMemHostUnregister") == 1, "it is unpinned once");
    SUCCEEDS(gpu->ops->locate(gpu, own, size, &place, &err));
    NEED(place.kind == DT_GPU_HOST, "%d", place.kind);
    SUCCEEDS(gpu->ops->host_pin(gpu, 0, own, size, &err));
    dt_gpu_unload(gpu);
    NEED(calls("cuMemHostUnregister") == 2, "the end unpins what is left");
    free(own);
}

/* Whoever made them. */
static void case_settle(void)
{
    set_up();
    char *a = pinned(9), *b = on_device(0, 9), *c = pinned(9);
    struct dt_cu_context *context;
    dt_stream_t user;
    USER(cuDevicePrimaryCtxRetain, &context, 0);
    USER(cuCtxSetCurrent, context);
    USER(cuStreamCreate, &user, DT_CU_NON_BLOCKING);
    memcpy(a, "12345678", 9);
    SUCCEEDS(copy(b, a, 9, user));
    SUCCEEDS(copy(c, b, 9, user));
    SUCCEEDS(gpu->ops->settle(gpu, 0, &err));
    NEED(strcmp(c, "12345678") == 0, "all is done");
    FAILS(gpu->ops->settle(gpu, 9, &err), DT_ERR_INVALID_ARG, "device 9");
    dt_gpu_unload(gpu);
}

/* ---- threads ---- */

static void *copy_much(void *arg)
{
    char *at = arg;
    dt_stream_t on, other;
    SUCCEEDS(gpu->ops->stream_create(gpu, 0, &on, &err));
    SUCCEEDS(gpu->ops->stream_create(gpu, 0, &other, &err));
    for (int i = 0; i < 200; i++) {
        SUCCEEDS(copy(at + i + 1, at + i, 1, i % 2 ? on : other));
        SUCCEEDS(gpu->ops->order(gpu, 0, i % 2 ? on : other, i % 2 ? other : on,
                                 &err));
    }
    finish(on);
    finish(other);
    gpu->ops->stream_destroy(gpu, on);
    gpu->ops->stream_destroy(gpu, other);
    return NULL;
}

/* Each one's chain of copies goes from one stream to another and back; one
 * event is for all. */
static void case_threads(void)
{
    enum { N = 4 };
    pthread_t thread[N];
    set_up();
    char *at[N];
    for (int i = 0; i < N; i++) {
        at[i] = pinned(300);
        at[i][0] = (char)(i + 1);
        NEED(!pthread_create(&thread[i], NULL, copy_much, at[i]), "thread");
    }
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        NEED(at[i][200] == i + 1, "thread %d", i);
    }
    dt_gpu_unload(gpu);
}

/* ---- what the driver refuses ---- */

static void case_broken(void)
{
    set_up();
    char *a = pinned(2), *b = pinned(2);
    SUCCEEDS(copy(a, b, 2, stream));
    FAILS(copy(a, b, 2, stream), DT_ERR_SYSTEM,
          "CUDA_ERROR_LAUNCH_FAILED (719)");
    FAILS(gpu->ops->finish(gpu, 0, stream, &err), DT_ERR_SYSTEM,
          "finish a stream of device 0: unknown (1234)");
    FAILS(gpu->ops->order(gpu, 0, NULL, stream, &err), DT_ERR_NO_MEMORY,
          "OUT_OF_MEMORY");
    dt_gpu_unload(gpu);
}

/* Kernels are loaded once per device, and only when one is needed. */
static void case_kernels(void)
{
    set_up();
    const char *in = on_device(0, 40);
    int (*calls)(const char *) = CU(dt_mock_calls);
    NEED(!calls("cuModuleLoadData"), "not yet");
    for (int i = 0; i < 3; i++)
        SUCCEEDS(gpu->ops->scale(gpu, 0, on_device(0, 40), in, 10, DT_DTYPE_F32,
                                 2.0, stream, &err));
    NEED(calls("cuModuleLoadData") == 1, "once");
    NEED(calls("cuModuleGetFunction") == DT_KERNELS, "all of them");
    finish(stream);
    dt_gpu_unload(gpu);
}

/* The image does not suit the driver: the next call tries again. */
static void case_image(void)
{
    set_up();
    char *p = on_device(0, 40);
    for (int i = 0; i < 2; i++)
        FAILS(
            gpu->ops->scale(gpu, 0, p, p, 10, DT_DTYPE_F32, 2.0, stream, &err),
            DT_ERR_UNSUPPORTED, "built for other GPUs or a later driver");
    dt_gpu_unload(gpu);
}

int main(void)
{
    run_case("a stream is in order", case_in_order,
             "DT_MOCK_DELAY=cuMemcpyAsync=1000");
    run_case("two streams in order", case_two_streams,
             "DT_MOCK_DELAY=cuMemcpyAsync=1000");
    run_case("the default stream", case_default_stream, "");
    run_case("values", case_values, "");
    run_case("a stream's end", case_destroy,
             "DT_MOCK_DELAY=cuStreamWriteValue32_v2=10000");
    run_case("whose stream it is", case_stream_device, "");
    run_case("a graph", case_capture, "");
    run_case("copies", case_copies, "");
    run_case("rows far apart", case_far_rows, "");
    run_case("memory of the host's own is pinned", case_pinned, "");
    run_case("all streams of a device", case_settle,
             "DT_MOCK_DELAY=cuMemcpyAsync=10000");
    run_case("threads", case_threads, "");
    run_case("a driver that breaks", case_broken,
             "DT_MOCK_FAIL=cuMemcpyAsync=719@2,cuStreamSynchronize=1234,"
             "cuEventCreate=2");
    run_case("kernels are loaded once", case_kernels, "");
    run_case("an image that does not suit", case_image,
             "DT_MOCK_FAIL=cuModuleLoadData=222");
    return tap_done();
}
