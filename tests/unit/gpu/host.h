/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* host.h - launches of the GPU's kernels, run at once, on this thread. */
#ifndef GPU_HOST_H
#define GPU_HOST_H

#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/cuda.h"
#include "exec/exec.h"
#include "kernels.h"
#include "../tap.h"

/* What a thread launched last; the kernels' driver is not there. */
struct launch {
    const struct dt_mock_kernel *kernel;
    unsigned blocks, threads;
    size_t size;
    char args[4096];
};
static __thread struct launch last;
static __thread unsigned launches;

__attribute__((unused)) static void run_launch(const struct launch *launch)
{
    for (unsigned b = 0; b < launch->blocks; b++)
        launch->kernel->run(launch->args, b, launch->blocks, launch->threads);
}

dt_result_t dt_cuda_launch(struct dt_gpu *gpu, int device,
                           enum dt_kernel kernel, unsigned blocks,
                           unsigned threads, const void *args, size_t size,
                           dt_stream_t stream, struct dt_error *err)
{
    (void)gpu, (void)device, (void)stream, (void)err;
    last.kernel = dt_mock_kernel(dt_kernel_name(kernel));
    last.blocks = blocks;
    last.threads = threads;
    last.size = size;
    memcpy(last.args, args, size);
    run_launch(&last);
    launches++;
    return DT_SUCCESS;
}

/* The same numbers from the same seed, whoever asks. */
static inline uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44d;
    return x ^ x >> 33;
}

static inline uint64_t draw(uint64_t *seed)
{
    return mix(*seed += 0x9e3779b97f4a7c15);
}

static inline size_t below(uint64_t *seed, size_t n)
{
    return (size_t)(draw(seed) % n);
}

/* Any bits, with many of zeros, ones, infinities, NaN, the largest and the
 * smallest of each type. */
__attribute__((unused)) static void
fill_special(void *buf, size_t count, dt_dtype_t dtype, uint64_t *seed)
{
    static const uint32_t f32[] = {
        0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
        0x7fc00000, 0xffc12345, 0x7f800001, 0x7f7fffff, 1,          0x807fffff,
        0x00800000, 0x477fe000, 0x477ff000, 0x43e00000, 0x33000000, 0x3f810000};
    static const uint64_t f64[] = {
        0,          1ull << 63, 0x3ff0000000000000, 0xbff0000000000000,
        0x7ff00000, 1,          0x7ff0000000000000, 0xfff0000000000000,
        ~0ull,      1ull << 52, 0x7ff0000000000001, 0x47efffffffffffff,
        1ull << 29, 1ull << 51, 0x3690000000000000, 0x380fffffffffffff,
    };
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = draw(seed);
        bool special = below(seed, 4) == 0;
        if (dtype == DT_DTYPE_F32 && special)
            bits = f32[below(seed, sizeof(f32) / sizeof(f32[0]))];
        else if (dtype == DT_DTYPE_F32 && below(seed, 2))
            bits = (bits & 0x807fffff) | (uint32_t)(100 + bits % 50) << 23;
        else if (dtype == DT_DTYPE_F64 && special)
            bits = f64[below(seed, sizeof(f64) / sizeof(f64[0]))];
        else if (dtype == DT_DTYPE_F64 && below(seed, 2))
            bits = (bits & 0x800fffffffffffff) | (880 + bits % 300) << 52;
        size_t size = dt_dtype_size(dtype);
        memcpy((char *)buf + i * size, &bits, size);
    }
}

#endif
