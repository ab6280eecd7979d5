/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_memory.c - this rank's GPU by libdt's module for GPUs. */
#include "measure/gpu_memory.h"

#include <dlfcn.h>
#include <stdlib.h>

dt_result_t gpu_find(struct dt_error *err)
{
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))
        return DT_SUCCESS; /* for the life of the process */
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "--mem cuda: no driver of NVIDIA's here: %s",
                        dlerror());
}

dt_result_t gpu_open(struct gpu **out, const struct job *job,
                     struct dt_error *err)
{
    struct gpu *gpu = calloc(1, sizeof(*gpu));
    int count = 0;
    if (!gpu)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a GPU");
    dt_result_t rc = dt_gpu_load(&gpu->gpu, err);
    if (rc == DT_SUCCESS)
        rc = gpu->gpu->ops->devices(gpu->gpu, &count, err);
    if (rc == DT_SUCCESS) {
        gpu->device = job->local_rank % count;
        rc = gpu->gpu->ops->stream_create(gpu->gpu, gpu->device, &gpu->stream,
                                          err);
    }
    if (rc == DT_SUCCESS)
        *out = gpu;
    else
        gpu_close(gpu);
    return rc;
}

void gpu_close(struct gpu *gpu)
{
    if (!gpu)
        return;
    if (gpu->stream)
        gpu->gpu->ops->stream_destroy(gpu->gpu, gpu->stream);
    dt_gpu_unload(gpu->gpu);
    free(gpu);
}

dt_result_t gpu_alloc(struct gpu *gpu, size_t bytes, char **ptr,
                      struct dt_gpu_handle *handle, struct dt_error *err)
{
    void *memory = NULL;
    char text[32];
    dt_result_t rc = gpu->gpu->ops->share_alloc(gpu->gpu, gpu->device, bytes,
                                                &memory, handle, err);
    *ptr = memory;
    if (rc != DT_ERR_NO_MEMORY)
        return rc;
    return dt_error_set(err, rc,
                        "GPU %d has no memory for a buffer of %s: give a "
                        "smaller -e",
                        gpu->device, size_text(text, bytes));
}

void gpu_free(struct gpu *gpu, char *ptr)
{
    gpu->gpu->ops->share_free(gpu->gpu, ptr, NULL);
}

dt_result_t gpu_copy(struct gpu *gpu, void *dst, const void *src, size_t bytes,
                     struct dt_error *err)
{
    const struct dt_gpu_copy copy = {
        .dst = dst, .src = src, .len = bytes, .rows = 1};
    dt_result_t rc =
        gpu->gpu->ops->copy(gpu->gpu, gpu->device, &copy, gpu->stream, err);
    return rc == DT_SUCCESS ? gpu_finish(gpu, err) : rc;
}

dt_result_t gpu_finish(struct gpu *gpu, struct dt_error *err)
{
    return gpu->gpu->ops->finish(gpu->gpu, gpu->device, gpu->stream, err);
}
