/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* trouble.c - buffers where they should not be, ranks that go away, and a
 * driver that fails. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"
#include "mock.h"

#define F32 DT_DTYPE_F32

static void refused(dt_result_t rc, dt_result_t want, const char *words)
{
    expect(rc == want, "result %d, not %d (%s)", rc, want, words);
    expect(strstr(dt_last_error(), words) != NULL, "words: expected \"%s\"",
           words);
}

static dt_result_t sum(const void *from, void *to, size_t count,
                       dt_stream_t stream)
{
    return dt_allreduce(from, to, count, F32, DT_OP_SUM, dt_comm_world(),
                        stream);
}

static void *on_gpu_1(void)
{
    struct dt_cu_context *context, *popped;
    if (cuDevicePrimaryCtxRetain(&context, 1) || cuCtxPushCurrent_v2(context))
        return NULL;
    void *memory = gpu_memory(4000);
    cuCtxPopCurrent_v2(&popped);
    return memory;
}

void mode_places(int argc, char **argv)
{
    static float host[1000];
    const dt_result_t wrong = DT_ERR_INVALID_ARG;
    dt_stream_t stream = gpu_stream();
    float *gpu = gpu_memory(4000), *other = on_gpu_1(), *freed;
    dt_cu_ptr managed = 0;
    void *pinned = NULL;
    (void)argc, (void)argv;
    expect(!cuMemHostAlloc(&pinned, 4000, 1), "pinned");
    expect(!cuMemAllocManaged(&managed, 4000, 1), "managed");
    float *both = (float *)(uintptr_t)managed;
    freed = gpu_memory(4000);
    expect(!cuMemFree_v2((dt_cu_ptr)(uintptr_t)freed), "free");

    refused(sum(gpu, host, 1000, DT_STREAM_NONE), wrong,
            "sendbuf is on GPU 0, but recvbuf in host memory");
    refused(sum(host, gpu, 1000, DT_STREAM_NONE), wrong,
            "sendbuf is in host memory, but recvbuf on GPU 0");
    refused(sum(gpu, pinned, 1000, DT_STREAM_NONE), wrong, "pinned");
    refused(sum(gpu, other, 1000, DT_STREAM_NONE), wrong, "GPU 1");
    refused(sum(gpu, freed, 1000, DT_STREAM_NONE), wrong, "recvbuf");
    refused(sum(gpu, freed, 1000, stream), wrong, "or was freed");
    refused(sum(host, host, 1000, stream), wrong, "sendbuf is in host memory");
    refused(sum(pinned, pinned, 1000, stream), wrong, "DT_STREAM_NONE");
    refused(sum(other, other, 1000, stream), wrong,
            "on GPU 1, but the stream on GPU 0");
    refused(sum(gpu, gpu, 1001, stream), wrong, "leave their GPU allocation");
    refused(sum(gpu + 900, gpu + 900, 200, DT_STREAM_NONE), wrong, "leave");
    refused(sum((char *)gpu + 1, gpu + 500, 100, stream), wrong,
            "not aligned to elements of 4 bytes");
    refused(sum(gpu, gpu, 10, (dt_stream_t)0x1234), wrong, "");
    refused(dt_iallreduce(gpu, gpu, 10, F32, DT_OP_SUM, WORLD, NULL), wrong,
            "request is NULL");

    /* managed memory goes with either, and the host's is as ever */
    put_floats(both, 1000, 1);
    expect(sum(both, both, 1000, DT_STREAM_NONE) == DT_SUCCESS, "managed");
    expect_sum(both, 1000, 1, "managed, on the host");
    put_floats(both, 1000, 2);
    expect(sum(both, gpu, 1000, stream) == DT_SUCCESS, "managed, a stream");
    gpu_sync(stream);
    expect_sum(gpu, 1000, 2, "managed, on the GPU");
    put_floats(pinned, 1000, 3);
    expect(sum(pinned, host, 1000, DT_STREAM_NONE) == DT_SUCCESS, "pinned");
    expect_sum(host, 1000, 3, "pinned");
    refused(sum(other, other, 1000, DT_STREAM_NONE), wrong,
            "this communicator works on GPU 0");

    /* memory that CUDA IPC cannot export needs no export */
    float *mapped = (float *)(uintptr_t)dt_mock_mappings(0, 1, 4096);
    put_floats(mapped, 1000, 4);
    expect(sum(mapped, gpu, 1000, stream) == DT_SUCCESS, "mapped");
    gpu_sync(stream);
    expect_sum(gpu, 1000, 4, "mapped");

    /* what goes through the host is not for graphs */
    const size_t few[16] = {1}, at[16] = {0};
    struct mock_graph *graph;
    expect(!cuStreamBeginCapture_v2(stream, 2), "capture");
    if (dt_size() > 1)
        refused(dt_allgatherv(gpu, gpu, few, at, F32, dt_comm_world(), stream),
                DT_ERR_UNSUPPORTED, "which no graph can capture");
    expect(!cuStreamEndCapture(stream, &graph) && !cuGraphDestroy(graph),
           "end of capture");

    /* nothing to do is nothing to complain of */
    dt_request_t request = NULL;
    expect(sum(host, gpu, 0, stream) == DT_SUCCESS, "nothing");
    expect(dt_iallreduce(gpu, gpu, 0, F32, DT_OP_SUM, dt_comm_world(), stream,
                         &request) == DT_SUCCESS &&
               !request,
           "nothing later");
    expect(dt_barrier(dt_comm_world(), stream) == DT_SUCCESS, "barrier");
    gpu_sync(stream);
}

/* With DT_CHECK=1: ranks that disagree about where the buffers are. */
void mode_disagree(int argc, char **argv)
{
    static float host[1000];
    float *gpu = gpu_memory(4000), *mine = dt_rank() ? host : gpu;
    dt_stream_t stream = dt_rank() ? DT_STREAM_NONE : gpu_stream();
    const size_t none[16] = {0};
    (void)argc, (void)argv;
    refused(sum(mine, mine, 1000, stream), DT_ERR_MISMATCH,
            "DT_CHECK: rank 1 calls dt_allreduce of 1000 f32, sum, in "
            "host memory, where rank 0 calls dt_allreduce of 1000 f32, sum, in "
            "device memory,");
    refused(dt_barrier(dt_comm_world(), stream), DT_ERR_MISMATCH,
            "rank 1 calls dt_barrier, in host memory, where rank 0 calls "
            "dt_barrier, in device memory");
    refused(dt_alltoallv(mine, none, none, mine, none, none, F32,
                         dt_comm_world(), stream),
            DT_ERR_MISMATCH, "dt_alltoallv of f32, in host memory, where");
    put_floats(mine, 1000, 1);
    expect(sum(gpu, gpu, 1000, DT_STREAM_NONE) == DT_SUCCESS, "it works on");
}

/* ---- ranks that go away ---- */

static int fate;
static struct timespec lifetime;

static void *reaper(void *arg)
{
    nanosleep(&lifetime, NULL);
    kill(getpid(), fate);
    return arg;
}

static dt_result_t one(const char *name, float *a, float *b, size_t n,
                       dt_stream_t stream)
{
    dt_comm_t world = dt_comm_world();
    int me = dt_rank(), size = dt_size();
    if (!strcmp(name, "allreduce"))
        return dt_allreduce(a, b, n, F32, DT_OP_SUM, world, stream);
    if (!strcmp(name, "alltoallv")) {
        size_t even[16], at[16];
        for (int r = 0; r < size; r++) {
            even[r] = n / 4;
            at[r] = n / 4 * (size_t)r;
        }
        return dt_alltoallv(a, even, at, b, even, at, F32, world, stream);
    }
    if (!strcmp(name, "barrier"))
        return dt_barrier(world, stream);
    dt_group_start();
    dt_result_t rc = dt_send(a, n, F32, (me + 1) % size, world, stream);
    if (rc == DT_SUCCESS)
        rc = dt_recv(b, n, F32, (me + size - 1) % size, world, stream);
    dt_result_t ended = dt_group_end();
    return rc == DT_SUCCESS ? ended : rc;
}

/* lost kill|stop CALL MICROSECONDS: the last rank goes; the streams of the
 * others come to their end, and all calls after it fail. Every eighth call is
 * waited for, or, without a stream, every one. */
void mode_lost(int argc, char **argv)
{
    const size_t count = 600000;
    dt_stream_t stream = gpu_stream();
    float *a = gpu_memory(count * 4), *b = gpu_memory(count * 4);
    pthread_t thread;
    dt_result_t rc = DT_SUCCESS;
    if (argc != 3)
        exit(64);
    fate = strcmp(argv[0], "kill") ? SIGSTOP : SIGKILL;
    lifetime.tv_nsec = 1000L * strtol(argv[2], NULL, 10);
    if (dt_rank() == dt_size() - 1 &&
        pthread_create(&thread, NULL, reaper, NULL))
        exit(3);
    for (int k = 0; rc == DT_SUCCESS; k++) {
        rc = one(argv[1], a, b, k % 3 ? count : 100, stream);
        if (k % 8 == 7)
            gpu_sync(stream);
    }
    /* on a busy machine its patience may end before it is stopped */
    while (fate == SIGSTOP && dt_rank() == dt_size() - 1)
        pause();
    expect(rc == DT_ERR_PROC_FAILED ||
               (rc == DT_ERR_TIMED_OUT && fate == SIGSTOP),
           "result %d", rc);
    expect(dt_last_error()[0], "no words");
    gpu_sync(stream);
    expect(one(argv[1], a, b, 100, stream) == rc, "not for ever");
    expect(dt_barrier(WORLD) == rc, "not for the host");
    expect(dt_finalize() == DT_SUCCESS, "finalize after");
}

/* broken MINE THEIRS: the driver of rank 0 fails when DT_MOCK_FAIL says so. It
 * gets one result, all others another, and nothing hangs. */
void mode_broken(int argc, char **argv)
{
    const size_t count = 600000;
    dt_stream_t stream = gpu_stream();
    float *a = gpu_memory(count * 4);
    dt_result_t rc = DT_SUCCESS;
    if (argc != 2)
        exit(64);
    long want = strtol(argv[dt_rank() != 0], NULL, 10);
    for (int k = 0; rc == DT_SUCCESS && k < 1000; k++) {
        dt_request_t request = NULL;
        rc = dt_iallreduce(a, a, count, F32, DT_OP_SUM, dt_comm_world(), stream,
                           &request);
        if (rc == DT_SUCCESS)
            rc = dt_wait(&request);
    }
    expect(rc == want, "result %d, not %ld", rc, want);
    expect(dt_last_error()[0], "no words");
    expect(sum(a, a, count, stream) == rc, "not for ever");
    expect(dt_finalize() == DT_SUCCESS, "finalize after");
}
