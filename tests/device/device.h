/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* device.h - what the parts of the check and the times of a real GPU share. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdatomic.h>

#include "gpu/gpu.h"

#define RANKS    8
#define BATCHES  11 /* of a measurement; odd, the median counts */
#define VARIANTS 8

/* Where the processes of a job meet: mapped by all of them. */
struct area {
    atomic_uint arrived, gone;
    struct dt_gpu_handle handle[RANKS];
    size_t repeats;
    double seconds[RANKS][VARIANTS][BATCHES];
};

/* A process, and its GPU. */
struct device {
    struct dt_gpu *gpu;
    dt_stream_t stream;
    size_t rank, size;
    size_t bytes; /* of a long buffer */
    unsigned met; /* how often */
    struct area *area;
};

/* The error's text on standard error, and the end of this process. */
void need(dt_result_t rc, const struct dt_error *err);
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *fmt, ...);

/* All processes come here, or the end comes to all. */
void meet(struct device *d);

char *device_memory(struct device *d, size_t len);
void move(struct device *d, void *dst, const void *src, size_t len);
void finish(struct device *d);
double now(void);

/* The time of each variant, run `repeats` times in a row on the stream, in
 * BATCHES turns; the median of the slowest rank's. `repeats` is what takes some
 * 100 ms, or 10 where long buffers are so short that this is only a try.
 * Collective. */
typedef void variant_fn(struct device *d, void *context, size_t variant);
void measure(struct device *d, variant_fn *fn, void *context, size_t variants,
             double *medians);

double median(double seconds[BATCHES]);

/* A row of the table: what was measured, its limit of the same run, and their
 * ratio, which should be at least (or at most, where smaller is better). */
void row(const struct device *d, const char *what, double value, double limit,
         const char *unit, const char *wanted);

void check_kernels(struct device *d);
void time_kernels(struct device *d);
void time_launch(struct device *d);
void check_exchange(struct device *d);
void time_exchange(struct device *d);

#endif
