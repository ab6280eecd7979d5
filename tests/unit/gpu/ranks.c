/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.c - what one rank of gpu-coll.t does, `gpu-ranks MODE [ARG ...]`:
 * collectives on GPU memory of the mock driver. Exits 0 if this rank saw what
 * it should. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"
#include "ucx.h"

/* ---- the GPU ---- */

static void must(int code, const char *what)
{
    if (!code)
        return;
    fprintf(stderr, "rank %d: %s: code %d of the mock\n", dt_rank(), what,
            code);
    exit(3);
}

/* All share GPU 0, or, with GPU_OF_ITS_OWN, each has one. */
static void use_gpu(void)
{
    struct dt_cu_context *context;
    int device = getenv("GPU_OF_ITS_OWN") ? dt_rank() : 0;
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&context, device),
         "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

void *gpu_memory(size_t len)
{
    dt_cu_ptr ptr;
    must(cuMemAlloc_v2(&ptr, len), "cuMemAlloc");
    void *memory = (void *)(uintptr_t)ptr;
    memset(memory, 0, len);
    return memory;
}

dt_stream_t gpu_stream(void)
{
    dt_stream_t stream;
    must(cuStreamCreate(&stream, 1), "cuStreamCreate");
    return stream;
}

void gpu_sync(dt_stream_t stream)
{
    must(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void gpu_copy(void *dst, const void *src, size_t len, dt_stream_t stream)
{
    must(cuMemcpyAsync((dt_cu_ptr)(uintptr_t)dst, (dt_cu_ptr)(uintptr_t)src,
                       len, stream),
         "cuMemcpyAsync");
}

static uint32_t *gate;
static uint32_t shut;

void gate_shut(dt_stream_t stream)
{
    void *page;
    if (!gate) {
        must(cuMemHostAlloc(&page, 4096, 3), "cuMemHostAlloc");
        gate = page;
    }
    must(cuStreamWaitValue32_v2(stream, (dt_cu_ptr)(uintptr_t)gate, ++shut, 0),
         "cuStreamWaitValue32");
}

void gate_open(void)
{
    __atomic_store_n(gate, shut, __ATOMIC_RELEASE);
}

static float number(int rank, size_t i, int step)
{
    return (float)((i * 7 + (size_t)rank * 3 + (size_t)step * 11) % 1000);
}

void put_floats(float *buf, size_t count, int step)
{
    for (size_t i = 0; i < count; i++)
        buf[i] = number(dt_rank(), i, step);
}

void expect_sum(const float *buf, size_t count, int step, const char *what)
{
    size_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int r = 0; r < dt_size(); r++)
            sum += number(r, i, step);
        bad += buf[i] != sum;
    }
    expect(!bad, "%s, step %d: %zu of %zu are wrong", what, step, bad, count);
}

/* ---- the mode "all": that of coll-ranks, in memory of the GPU ---- */

size_t each_shift = 8; /* GPUs want whole elements */
dt_stream_t each_stream;

dt_result_t each_done(dt_result_t rc)
{
    if (each_stream)
        gpu_sync(each_stream);
    return rc;
}

void open_arenas(void)
{
    want_buf = malloc(ROOM);
    copy_buf = malloc(ROOM);
    for (int m = 0; m < MEMORIES; m++)
        for (int i = 0; i < 2; i++)
            arena[m][i] = gpu_memory(ROOM);
}

void close_arenas(void)
{
    free(want_buf);
    free(copy_buf);
}

static void mode_stream(int argc, char **argv)
{
    each_stream = gpu_stream();
    mode_all(argc, argv);
}

static const struct mode modes[] = {
    {"all", mode_all, false},           {"stream", mode_stream, false},
    {"order", mode_order, false},       {"two", mode_two, false},
    {"many", mode_many, false},         {"messages", mode_messages, false},
    {"steady", mode_steady, false},     {"end", mode_end, true},
    {"places", mode_places, false},     {"lost", mode_lost, true},
    {"broken", mode_broken, true},      {"served", mode_served, false},
    {"disagree", mode_disagree, false}, {"fails", mode_fails, true},
    {"dead", mode_dead, true},          {"direct", mode_direct, false},
};

int main(int argc, char **argv)
{
    const struct mode *mode = begin_mode(modes, argc, argv);
    use_gpu();
    mode->fn(argc - 2, argv + 2);
    expect(!mock_ucx_wrong(), "UCX is not told what it should");
    return end_mode(mode);
}
