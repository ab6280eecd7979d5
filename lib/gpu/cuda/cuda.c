/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cuda.c - the entry of the module: its table of functions, open and close. */
#include "gpu/cuda/cuda.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- devices ---- */

static dt_result_t devices(struct dt_gpu *gpu, int *count, struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    dt_result_t rc = dt_cuda_start(cuda, err);
    if (!rc)
        *count = cuda->count;
    return rc;
}

static dt_result_t bus(struct dt_gpu *gpu, int device, char name[24],
                       struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    char text[24] = ""; /* its last byte stays NUL */
    dt_result_t rc = dt_cuda_check_device(cuda, device, err);
    if (rc)
        return rc;
    int code = cuda->driver.cuDeviceGetPCIBusId(text, sizeof(text) - 1, device);
    if (code)
        return dt_cuda_driver_error(&cuda->driver, code, err,
                                    "tell the bus of device %d", device);
    for (size_t i = 0; i < sizeof(text); i++)
        name[i] = (char)tolower((unsigned char)text[i]);
    return DT_SUCCESS;
}

static dt_result_t enter(struct dt_gpu *gpu, int device,
                         struct dt_gpu_scope *scope, struct dt_error *err)
{
    struct dt_cuda_scope own;
    dt_result_t rc = dt_cuda_enter(gpu, device, &own, err);
    if (!rc)
        scope->capture_mode = own.capture_mode;
    return rc;
}

static void leave(struct dt_gpu *gpu, struct dt_gpu_scope *scope)
{
    struct dt_cuda_scope own = {.driver = &dt_cuda_of(gpu)->driver,
                                .capture_mode = scope->capture_mode};
    dt_cuda_leave(&own);
}

/* ---- open and close ---- */

static dt_result_t open_cuda(struct dt_gpu **gpu, struct dt_error *err)
{
    struct dt_cuda *cuda = calloc(1, sizeof(*cuda));
    if (!cuda)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc = dt_cuda_driver_open(&cuda->driver, err);
    if (rc) {
        free(cuda);
        return rc;
    }
    pthread_mutex_init(&cuda->lock, NULL);
    cuda->gpu.ops = &dt_gpu_cuda;
    *gpu = &cuda->gpu;
    return DT_SUCCESS;
}

static void close_device(struct dt_cuda *cuda, int device)
{
    struct dt_cuda_device *dev = &cuda->device[device];
    struct dt_cuda_scope scope;
    if (dev->context && !dt_cuda_enter(&cuda->gpu, device, &scope, NULL)) {
        if (dev->event)
            cuda->driver.cuEventDestroy_v2(dev->event);
        if (dev->module)
            cuda->driver.cuModuleUnload(dev->module);
        dt_cuda_leave(&scope);
        cuda->driver.cuDevicePrimaryCtxRelease_v2(device);
    }
    pthread_mutex_destroy(&dev->lock);
}

static void close_cuda(struct dt_gpu *gpu)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    if (!cuda)
        return;
    dt_cuda_drop_all(cuda);
    for (int i = 0; i < cuda->count; i++)
        close_device(cuda, i);
    free(cuda->device);
    dt_cuda_driver_close(&cuda->driver);
    pthread_mutex_destroy(&cuda->lock);
    free(cuda);
}

const struct dt_gpu_ops dt_gpu_cuda = {.size = sizeof(dt_gpu_cuda),
                                       .name = "cuda",
                                       .open = open_cuda,
                                       .close = close_cuda,
                                       .devices = devices,
                                       .bus = bus,
                                       .enter = enter,
                                       .leave = leave,
#define MEMBER(name) .name = dt_cuda_##name,
                                       DT_CUDA_OPS(MEMBER)
#undef MEMBER
};
