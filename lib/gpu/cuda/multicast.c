/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* multicast.c - windows: memory of several devices, bound to one multicast
 * object, which is mapped beside it. */
#include <unistd.h>

#include "gpu/cuda/cuda.h"

static dt_result_t check(const struct dt_cuda_driver *driver, int device,
                         struct dt_error *err)
{
    int has = 0;
    if (!driver->multicast)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "CUDA: the driver has no multicast, which came "
                            "with CUDA 12.1: update the driver");
    int code = driver->cuDeviceGetAttribute(&has, DT_CU_HAS_MULTICAST, device);
    if (!code && !has)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "CUDA: device %d has no multicast, which takes "
                            "NVSwitch and a GPU of Hopper or later",
                            device);
    return dt_cuda_driver_error(driver, code, err,
                                "tell whether device %d has multicast", device);
}

static int make(const struct dt_cuda_driver *driver, size_t n, size_t size,
                struct dt_gpu_window *window, int *fd)
{
    struct dt_cu_multicast properties = {
        .devices = (unsigned)n, .size = size, .handles = DT_CU_HANDLE_FD};
    struct dt_gpu_handle handle = {.sharing = DT_GPU_SHARE_FD};
    struct dt_cuda_thing object = {.kind = DT_CUDA_SHARED};
    size_t block = 0;
    int code =
        driver->cuMulticastGetGranularity(&block, &properties, DT_CU_MINIMUM);
    if (!code && (!block || size > SIZE_MAX - block))
        code = DT_CU_INVALID_VALUE;
    if (code)
        return code;
    properties.size = (size + block - 1) / block * block;
    code = driver->cuMulticastCreate(&object.allocation, &properties);
    if (code)
        return code;
    code = dt_cuda_vmm_export(driver, &object, &handle);
    if (code) {
        driver->cuMemRelease(object.allocation);
        return code;
    }
    *fd = handle.fd;
    window->object = object.allocation;
    window->size = properties.size;
    return DT_CU_OK;
}

dt_result_t dt_cuda_window_make(struct dt_gpu *gpu, int device, size_t n,
                                size_t size, struct dt_gpu_window *window,
                                struct dt_gpu_handle *handle,
                                struct dt_error *err)
{
    struct dt_cuda_scope scope;
    int fd = -1;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    rc = check(scope.driver, device, err);
    if (!rc) {
        window->device = device;
        int code = make(scope.driver, n, size, window, &fd);
        if (!code)
            code = scope.driver->cuMulticastAddDevice(window->object, device);
        rc = dt_cuda_driver_error(scope.driver, code, err,
                                  "make a multicast object for %zu devices", n);
    }
    dt_cuda_leave(&scope);
    if (rc && fd >= 0)
        close(fd);
    if (!rc)
        *handle = (struct dt_gpu_handle){
            .sharing = DT_GPU_SHARE_FD, .fd = fd, .size = window->size};
    return rc;
}

static int join(const struct dt_cuda_driver *driver,
                const struct dt_gpu_handle *handle,
                struct dt_gpu_window *window)
{
    dt_cu_allocation object;
    int code = driver->cuMemImportFromShareableHandle(
        &object, (void *)(intptr_t)handle->fd, DT_CU_HANDLE_FD);
    if (code)
        return code;
    window->object = object;
    window->size = handle->size;
    return driver->cuMulticastAddDevice(object, window->device);
}

dt_result_t dt_cuda_window_join(struct dt_gpu *gpu, int device,
                                const struct dt_gpu_handle *handle,
                                struct dt_gpu_window *window,
                                struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    rc = check(scope.driver, device, err);
    if (!rc) {
        window->device = device;
        rc = dt_cuda_driver_error(
            scope.driver, join(scope.driver, handle, window), err,
            "add device %d to a multicast object", device);
    }
    dt_cuda_leave(&scope);
    return rc;
}

/* ---- memory ---- */

static struct dt_cuda_thing own_of(const struct dt_gpu_window *window)
{
    return (struct dt_cuda_thing){.kind = DT_CUDA_SHARED,
                                  .device = window->device,
                                  .at = window->own,
                                  .mapped = window->mapped,
                                  .allocation = window->memory};
}

static struct dt_cuda_thing all_of(const struct dt_gpu_window *window)
{
    return (struct dt_cuda_thing){.kind = DT_CUDA_SHARED,
                                  .device = window->device,
                                  .at = window->all,
                                  .mapped = window->size,
                                  .allocation = window->object};
}

static int get_memory(const struct dt_cuda_driver *driver,
                      struct dt_gpu_window *window)
{
    struct dt_cuda_thing own = own_of(window);
    int code = dt_cuda_vmm_alloc(driver, window->device, DT_GPU_SHARE_FD,
                                 window->size, &own);
    if (code)
        return code;
    window->own = own.at;
    window->mapped = own.mapped;
    window->memory = own.allocation;
    return DT_CU_OK;
}

static int bind(const struct dt_cuda_driver *driver,
                struct dt_gpu_window *window)
{
    struct dt_cuda_thing all = all_of(window);
    int code = get_memory(driver, window);
    if (!code)
        code = driver->cuMulticastBindMem(window->object, 0, window->memory, 0,
                                          window->size, 0);
    if (code)
        return code;
    window->bound = true;
    code = dt_cuda_vmm_map(driver, window->device, &all);
    if (!code)
        window->all = all.at;
    return code;
}

dt_result_t dt_cuda_window_bind(struct dt_gpu *gpu,
                                struct dt_gpu_window *window,
                                struct dt_error *err)
{
    struct dt_cuda_scope scope;
    dt_result_t rc = dt_cuda_enter(gpu, window->device, &scope, err);
    if (rc)
        return rc;
    int code = bind(scope.driver, window);
    dt_cuda_leave(&scope);
    return dt_cuda_driver_error(scope.driver, code, err,
                                "bind %zu bytes of device %d to a multicast "
                                "object",
                                window->size, window->device);
}

void dt_cuda_window_free(struct dt_gpu *gpu, struct dt_gpu_window *window)
{
    const struct dt_cuda_driver *driver = &dt_cuda_of(gpu)->driver;
    const struct dt_cuda_thing all = all_of(window), own = own_of(window);
    struct dt_cuda_scope scope;
    if (!window->object || dt_cuda_enter(gpu, window->device, &scope, NULL))
        return;
    if (window->bound) {
        driver->cuCtxSynchronize();
        driver->cuMulticastUnbind(window->object, window->device, 0,
                                  window->size);
    }
    if (window->all)
        dt_cuda_vmm_free(driver, &all);
    else
        driver->cuMemRelease(window->object);
    if (window->own)
        dt_cuda_vmm_free(driver, &own);
    dt_cuda_leave(&scope);
    *window = (struct dt_gpu_window){.size = 0};
}
