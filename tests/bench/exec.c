/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exec.c - how fast sums are: a line per size, number of inputs and type, the
 * best of a number of runs, in turn with copies of the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/exec.h"

enum { RUNS = 15, MOST_INPUTS = 8, NTYPES = 6 };

static const struct {
    dt_dtype_t dtype;
    const char *name;
} types[NTYPES] = {
    {DT_DTYPE_F32, "f32"},       {DT_DTYPE_BF16, "bf16"},
    {DT_DTYPE_F16, "f16"},       {DT_DTYPE_I8, "i8"},
    {DT_DTYPE_F8E4M3, "f8e4m3"}, {DT_DTYPE_F8E5M2, "f8e5m2"},
};

/* what is added and copied; all of one size */
struct job {
    size_t bytes, n;
    char *dst;
    const void *in[MOST_INPUTS];
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* a byte that makes a number near one of every type, again and again */
static char *buffer(size_t bytes)
{
    char *buf = aligned_alloc(4096, bytes);
    if (!buf)
        abort();
    return memset(buf, 0x3c, bytes);
}

/* a run of some MiB, in microseconds per fold; type NTYPES: a copy */
static double run(const struct job *job, size_t type)
{
    size_t times = ((size_t)8 << 20) / job->bytes + 1;
    double start = now_us();
    for (size_t i = 0; i < times; i++)
        if (type == NTYPES)
            memcpy(job->dst, job->in[i % job->n], job->bytes);
        else
            dt_exec_reduce_n(job->dst, job->in, job->n,
                             job->bytes / dt_dtype_size(types[type].dtype),
                             types[type].dtype, DT_OP_SUM, 1.0);
    return (now_us() - start) / (double)times;
}

static void measure(size_t bytes, size_t n)
{
    struct job job = {.bytes = bytes, .n = n, .dst = buffer(bytes)};
    double best[NTYPES + 1] = {0};
    for (size_t k = 0; k < n; k++)
        job.in[k] = buffer(bytes);
    for (size_t i = 0; i < RUNS; i++)
        for (size_t type = 0; type <= NTYPES; type++) {
            double us = run(&job, type);
            if (i == 0 || us < best[type])
                best[type] = us;
        }
    /* a copy moves each byte twice, a sum of n inputs n + 1 times */
    double bound = best[NTYPES] * (double)(n + 1) / 2;
    double f32_rate = (double)bytes / 4 / best[0];
    for (size_t type = 0; type < NTYPES; type++) {
        double elements =
            (double)(bytes / dt_dtype_size(types[type].dtype)) / best[type];
        printf("exec: %s: %zu x %5zu KiB %-6s: %6.1f GB/s, %.2f of copying, "
               "%.2f elements per f32\n",
               dt_exec_name(), n, bytes >> 10, types[type].name,
               (double)(bytes * (n + 1)) / best[type] / 1e3, bound / best[type],
               elements / f32_rate);
    }
    for (size_t k = 0; k < n; k++)
        free((void *)job.in[k]);
    free(job.dst);
}

int main(void)
{
    measure((size_t)64 << 10, 2);
    measure((size_t)1 << 20, 2);
    measure((size_t)1 << 20, MOST_INPUTS);
    measure((size_t)32 << 20, 2);
    return 0;
}
