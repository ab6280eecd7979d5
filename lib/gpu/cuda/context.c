/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* context.c - start the driver, enter the context of a device, and keep account
 * of what has to be released at close. */
#include "gpu/cuda/cuda.h"

#include <stdlib.h>

/* ---- the driver ---- */

static dt_result_t start_locked(struct dt_cuda *cuda, struct dt_error *err)
{
    const struct dt_cuda_driver *driver = &cuda->driver;
    int count = 0;
    if (cuda->count)
        return DT_SUCCESS;
    int code = driver->cuInit(0);
    if (!code)
        code = driver->cuDeviceGetCount(&count);
    if (!code && count < 1)
        code = DT_CU_NO_DEVICE;
    if (code) {
        dt_result_t rc =
            dt_cuda_driver_error(driver, code, err, "start the driver");
        /* nothing that a caller gave is wrong */
        return rc == DT_ERR_INVALID_ARG ? DT_ERR_SYSTEM : rc;
    }
    cuda->device = calloc((size_t)count, sizeof(*cuda->device));
    if (!cuda->device)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %d GPUs",
                            count);
    for (int i = 0; i < count; i++)
        pthread_mutex_init(&cuda->device[i].lock, NULL);
    cuda->count = count;
    return DT_SUCCESS;
}

dt_result_t dt_cuda_start(struct dt_cuda *cuda, struct dt_error *err)
{
    if (cuda->count)
        return DT_SUCCESS;
    pthread_mutex_lock(&cuda->lock);
    dt_result_t rc = start_locked(cuda, err);
    pthread_mutex_unlock(&cuda->lock);
    return rc;
}

/* ---- devices ---- */

dt_result_t dt_cuda_check_device(struct dt_cuda *cuda, int device,
                                 struct dt_error *err)
{
    dt_result_t rc = dt_cuda_start(cuda, err);
    if (rc || (device >= 0 && device < cuda->count))
        return rc;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "CUDA: no device %d: this process sees 0 to %d", device,
                        cuda->count - 1);
}

/* Its primary context, from the first use until close. */
static dt_result_t retain(struct dt_cuda *cuda, int device,
                          struct dt_error *err)
{
    struct dt_cuda_device *dev = &cuda->device[device];
    struct dt_cu_context *context = NULL;
    int code = 0;
    if (dev->context)
        return DT_SUCCESS;
    pthread_mutex_lock(&dev->lock);
    if (!dev->context)
        code = cuda->driver.cuDevicePrimaryCtxRetain(&context, device);
    if (context && !code)
        dev->context = context;
    pthread_mutex_unlock(&dev->lock);
    return dt_cuda_driver_error(&cuda->driver, code, err, "use device %d",
                                device);
}

dt_result_t dt_cuda_enter(struct dt_gpu *gpu, int device,
                          struct dt_cuda_scope *scope, struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    dt_result_t rc = dt_cuda_check_device(cuda, device, err);
    if (!rc)
        rc = retain(cuda, device, err);
    if (rc)
        return rc;
    scope->driver = &cuda->driver;
    scope->device = &cuda->device[device];
    scope->capture_mode = DT_CU_CAPTURE_RELAXED;
    int code = cuda->driver.cuCtxPushCurrent_v2(scope->device->context);
    if (code)
        return dt_cuda_driver_error(&cuda->driver, code, err, "use device %d",
                                    device);
    cuda->driver.cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
    return DT_SUCCESS;
}

void dt_cuda_leave(struct dt_cuda_scope *scope)
{
    struct dt_cu_context *context;
    scope->driver->cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
    scope->driver->cuCtxPopCurrent_v2(&context);
}

/* ---- what was given out ---- */

/* Give one thing back to the driver, whatever that says. */
static int give_back(struct dt_cuda *cuda, const struct dt_cuda_thing *thing)
{
    const struct dt_cuda_driver *driver = &cuda->driver;
    struct dt_cuda_scope scope;
    int code = DT_CU_INVALID_VALUE;
    if (dt_cuda_enter(&cuda->gpu, thing->device, &scope, NULL))
        return DT_CU_INVALID_CONTEXT;
    switch (thing->kind) {
    case DT_CUDA_SHARED:
        code = driver->cuMemFree_v2((dt_cu_ptr)(uintptr_t)thing->at);
        break;
    case DT_CUDA_IMPORTED:
        code = driver->cuIpcCloseMemHandle((dt_cu_ptr)(uintptr_t)thing->at);
        break;
    case DT_CUDA_PINNED:
        code = driver->cuMemFreeHost(thing->at);
        break;
    case DT_CUDA_REGISTERED:
        code = driver->cuMemHostUnregister(thing->at);
        break;
    case DT_CUDA_STREAM:
        code = driver->cuStreamSynchronize(thing->at);
        driver->cuStreamDestroy_v2(thing->at);
        break;
    }
    dt_cuda_leave(&scope);
    return code;
}

dt_result_t dt_cuda_keep(struct dt_cuda *cuda,
                         const struct dt_cuda_thing *thing,
                         struct dt_error *err)
{
    struct dt_cuda_thing *kept = malloc(sizeof(*kept));
    if (!kept) {
        give_back(cuda, thing);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    }
    *kept = *thing;
    pthread_mutex_lock(&cuda->lock);
    kept->next = cuda->things;
    cuda->things = kept;
    pthread_mutex_unlock(&cuda->lock);
    return DT_SUCCESS;
}

bool dt_cuda_drop(struct dt_cuda *cuda, enum dt_cuda_kind kind, void *at,
                  int *code)
{
    struct dt_cuda_thing **link, *thing;
    pthread_mutex_lock(&cuda->lock);
    for (link = &cuda->things; (thing = *link); link = &thing->next)
        if (thing->kind == kind && thing->at == at)
            break;
    if (thing)
        *link = thing->next;
    pthread_mutex_unlock(&cuda->lock);
    if (!thing)
        return false;
    *code = give_back(cuda, thing);
    free(thing);
    return true;
}

void dt_cuda_drop_all(struct dt_cuda *cuda)
{
    struct dt_cuda_thing *next;
    /* The last one first: streams before the memory that they use. */
    for (struct dt_cuda_thing *thing = cuda->things; thing; thing = next) {
        next = thing->next;
        give_back(cuda, thing);
        free(thing);
    }
    cuda->things = NULL;
}
