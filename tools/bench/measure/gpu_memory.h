/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_memory.h - this rank's GPU by the module for GPUs: memory, one stream,
 * and CUDA IPC. What of it has run on hardware is said in gpu/gpu.h. */
#ifndef DT_TOOLS_BENCH_GPU_MEMORY_H
#define DT_TOOLS_BENCH_GPU_MEMORY_H

#include "bench.h"
#include "gpu/gpu.h"

struct gpu {
    struct dt_gpu *gpu;
    int device;
    dt_stream_t stream;
};

/* Load the driver. Call this before dt_init(), which looks for a loaded driver.
 * Error: UNSUPPORTED. */
dt_result_t gpu_find(struct dt_error *err);

/* Local rank i uses the i-th GPU that it sees, which --dt-gpus has made its
 * own. Ranks share GPUs when there are more ranks than GPUs. */
dt_result_t gpu_open(struct gpu **gpu, const struct job *job,
                     struct dt_error *err);
void gpu_close(struct gpu *gpu); /* NULL is fine */

/* handle: for other processes of the node; NULL: the memory is not exported. */
dt_result_t gpu_alloc(struct gpu *gpu, size_t bytes, char **ptr,
                      struct dt_gpu_handle *handle, struct dt_error *err);
void gpu_free(struct gpu *gpu, char *ptr); /* NULL is fine */

/* Copy to or from memory of gpu_alloc(). Blocks until the copy is complete. */
dt_result_t gpu_copy(struct gpu *gpu, void *dst, const void *src, size_t bytes,
                     struct dt_error *err);

/* Block until all work on the stream is complete. */
dt_result_t gpu_finish(struct gpu *gpu, struct dt_error *err);

#endif
