/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_memory.h - the GPU of this rank, through its driver: memory, and a
 * stream. */
#ifndef DT_TOOLS_BENCH_GPU_MEMORY_H
#define DT_TOOLS_BENCH_GPU_MEMORY_H

#include "bench.h"

struct gpu;

/* Load the driver, before dt_init(), so that libdt sees that there is one.
 * UNSUPPORTED. */
dt_result_t gpu_find(struct dt_error *err);

/* Local rank i has the i-th GPU that it sees, as --dt-gpus has set them up;
 * more ranks than GPUs share them. */
dt_result_t gpu_open(struct gpu **gpu, const struct job *job,
                     struct dt_error *err);
void gpu_close(struct gpu *gpu); /* NULL is fine */

dt_result_t gpu_alloc(struct gpu *gpu, size_t bytes, char **ptr,
                      struct dt_error *err);
void gpu_free(struct gpu *gpu, char *ptr); /* NULL is fine */

/* To, or from, memory of gpu_alloc(); returns when it is done. */
dt_result_t gpu_copy(struct gpu *gpu, void *dst, const void *src, size_t bytes,
                     struct dt_error *err);

dt_stream_t gpu_stream(const struct gpu *gpu);

/* Wait for all that is on the stream. */
dt_result_t gpu_finish(struct gpu *gpu, struct dt_error *err);

/* ---- between processes of a node: CUDA IPC ---- */

struct gpu_handle {
    unsigned char bytes[64];
};

/* What all call it: "0000:1B:00.0". */
dt_result_t gpu_bus(const struct gpu *gpu, char bus[24], struct dt_error *err);

/* A name for memory of gpu_alloc() that others understand. */
dt_result_t gpu_show(const struct gpu *gpu, char *ptr,
                     struct gpu_handle *handle, struct dt_error *err);

/* Can this GPU read that one? UNSUPPORTED, with the reason. */
dt_result_t gpu_reaches(const struct gpu *gpu, const char *bus,
                        struct dt_error *err);

/* Another process's memory, until gpu_release(); NULL is fine there. */
dt_result_t gpu_import(const struct gpu *gpu, const struct gpu_handle *handle,
                       char **ptr, struct dt_error *err);
void gpu_release(const struct gpu *gpu, char *ptr);

#endif
