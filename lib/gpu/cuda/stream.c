/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stream.c - streams, their order, and flags in host memory. */
#include "gpu/cuda/cuda.h"

/* 0, 1 and 2 are the default streams of the current context. */
static bool is_default(dt_stream_t stream)
{
    return (uintptr_t)stream <= 2;
}

/* The device of the thread's current context, 0 where none is. */
static int current_device(const struct dt_cuda_driver *driver, int *device)
{
    int code = driver->cuCtxGetDevice(device);
    if (code != DT_CU_INVALID_CONTEXT)
        return code;
    *device = 0;
    return DT_CU_OK;
}

static int device_of(const struct dt_cuda_driver *driver, dt_stream_t stream,
                     int *device)
{
    struct dt_cu_context *context = NULL;
    if (is_default(stream))
        return current_device(driver, device);
    int code = driver->cuStreamGetCtx(stream, &context);
    if (!code)
        code = driver->cuCtxPushCurrent_v2(context);
    if (code)
        return code;
    code = driver->cuCtxGetDevice(device);
    driver->cuCtxPopCurrent_v2(&context);
    return code;
}

dt_result_t dt_cuda_stream_device(struct dt_gpu *gpu, dt_stream_t stream,
                                  int *device, bool *capturing,
                                  struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    struct dt_cuda_scope scope;
    int found = 0, status = 0;
    dt_result_t rc = dt_cuda_start(cuda, err);
    if (rc)
        return rc;
    int code = device_of(&cuda->driver, stream, &found);
    if (!code) {
        rc = dt_cuda_enter(gpu, found, &scope, err);
        if (rc)
            return rc;
        code = cuda->driver.cuStreamIsCapturing(stream, &status);
        dt_cuda_leave(&scope);
    }
    if (code)
        return dt_cuda_driver_error(&cuda->driver, code, err,
                                    "use the stream %p", stream);
    *device = found;
    *capturing = status != 0;
    return DT_SUCCESS;
}

dt_result_t dt_cuda_stream_create(struct dt_gpu *gpu, int device,
                                  dt_stream_t *stream, struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    struct dt_cuda_scope scope;
    int lowest = 0, highest = 0;
    dt_stream_t made = NULL;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuCtxGetStreamPriorityRange(&lowest, &highest);
    if (!code)
        code = scope.driver->cuStreamCreateWithPriority(
            &made, DT_CU_NON_BLOCKING, highest);
    dt_cuda_leave(&scope);
    if (code)
        return dt_cuda_driver_error(scope.driver, code, err,
                                    "make a stream on device %d", device);
    const struct dt_cuda_thing thing = {
        .kind = DT_CUDA_STREAM, .device = device, .at = made};
    rc = dt_cuda_keep(cuda, &thing, err);
    if (!rc)
        *stream = made;
    return rc;
}

void dt_cuda_stream_destroy(struct dt_gpu *gpu, dt_stream_t stream)
{
    int code;
    dt_cuda_drop(dt_cuda_of(gpu), DT_CUDA_STREAM, stream, &code);
}

/* One event serves all: a wait keeps what the event stood for when it was put
 * on its stream. */
static int order(const struct dt_cuda_driver *driver,
                 struct dt_cuda_device *device, dt_stream_t before,
                 dt_stream_t after)
{
    int code = 0;
    pthread_mutex_lock(&device->lock);
    if (!device->event)
        code = driver->cuEventCreate(&device->event, DT_CU_NO_TIMING);
    if (!code)
        code = driver->cuEventRecord(device->event, before);
    if (!code)
        code = driver->cuStreamWaitEvent(after, device->event, 0);
    pthread_mutex_unlock(&device->lock);
    return code;
}

dt_result_t dt_cuda_order(struct dt_gpu *gpu, int device, dt_stream_t before,
                          dt_stream_t after, struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = before == after
                   ? DT_CU_OK
                   : order(scope.driver, scope.device, before, after);
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "order streams %p and %p of device %d", before,
                                after, device);
}

/* ---- events ---- */

dt_result_t dt_cuda_event_create(struct dt_gpu *gpu, int device, void **event,
                                 struct dt_error *err)
{
    struct dt_cuda_scope scope;
    struct dt_cu_event *made = NULL;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuEventCreate(&made, DT_CU_NO_TIMING);
    dt_cuda_leave(&scope);
    if (!code)
        *event = made;
    return dt_cuda_driver_error(scope.driver, code, err,
                                "make an event on device %d", device);
}

void dt_cuda_event_destroy(struct dt_gpu *gpu, int device, void *event)
{
    struct dt_cuda_scope scope;
    if (dt_cuda_enter(gpu, device, &scope, NULL))
        return;
    scope.driver->cuEventDestroy_v2(event);
    dt_cuda_leave(&scope);
}

dt_result_t dt_cuda_event_record(struct dt_gpu *gpu, int device, void *event,
                                 dt_stream_t stream, struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuEventRecord(event, stream);
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "use stream %p as one of device %d", stream,
                                device);
}

dt_result_t dt_cuda_event_await(struct dt_gpu *gpu, int device, void *event,
                                dt_stream_t stream, struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuStreamWaitEvent(stream, event, 0);
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "order stream %p of device %d", stream, device);
}

/* ---- waiting ---- */

dt_result_t dt_cuda_query(struct dt_gpu *gpu, int device, dt_stream_t stream,
                          bool *done, struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuStreamQuery(stream);
    dt_cuda_leave(&scope);
    if (code && code != DT_CU_NOT_READY)
        return dt_cuda_driver_error(scope.driver, code, err,
                                    "ask a stream of device %d", device);
    *done = !code;
    return DT_SUCCESS;
}

dt_result_t dt_cuda_finish(struct dt_gpu *gpu, int device, dt_stream_t stream,
                           struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuStreamSynchronize(stream);
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "finish a stream of device %d", device);
}

dt_result_t dt_cuda_settle(struct dt_gpu *gpu, int device, struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuCtxSynchronize();
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "finish all streams of device %d", device);
}

dt_result_t dt_cuda_signal(struct dt_gpu *gpu, int device, uint32_t *flag,
                           uint32_t value, dt_stream_t stream,
                           struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuStreamWriteValue32_v2(
        stream, (dt_cu_ptr)(uintptr_t)flag, value, 0);
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "put a signal at %p on a stream of device %d",
                                (void *)flag, device);
}

dt_result_t dt_cuda_await(struct dt_gpu *gpu, int device, const uint32_t *flag,
                          uint32_t value, dt_stream_t stream,
                          struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = scope.driver->cuStreamWaitValue32_v2(
        stream, (dt_cu_ptr)(uintptr_t)flag, value, DT_CU_WAIT_GEQ);
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "put a wait for %p on a stream of device %d",
                                (const void *)flag, device);
}
