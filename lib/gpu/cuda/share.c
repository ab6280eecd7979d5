/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* share.c - memory of devices that processes of a node share. */
#include <string.h>
#include <unistd.h>

#include "gpu/cuda/cuda.h"

/* Smaller allocations share a block of this size, all of which a handle would
 * show to the others. */
#define BLOCK ((size_t)2 << 20)

dt_result_t dt_cuda_reaches(struct dt_gpu *gpu, int device, int peer, bool *yes,
                            struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    int can = 1;
    dt_result_t rc = dt_cuda_start(cuda, err);
    if (rc)
        return rc;
    int code = device == peer && device >= 0 && device < cuda->count
                   ? DT_CU_OK
                   : cuda->driver.cuDeviceCanAccessPeer(&can, device, peer);
    if (!code)
        *yes = can;
    return dt_cuda_driver_error(&cuda->driver, code, err,
                                "tell whether device %d reaches %d", device,
                                peer);
}

/* On a stream of its own: the default one would wait for the user's. */
static int zero(const struct dt_cuda_driver *driver, dt_cu_ptr ptr, size_t size)
{
    dt_stream_t stream;
    int code =
        driver->cuStreamCreateWithPriority(&stream, DT_CU_NON_BLOCKING, 0);
    if (code)
        return code;
    code = driver->cuMemsetD8Async(ptr, 0, size, stream);
    if (!code)
        code = driver->cuStreamSynchronize(stream);
    driver->cuStreamDestroy_v2(stream);
    return code;
}

/* A refusal that says nothing about the next call. */
static bool is_refusal(int code)
{
    switch (code) {
    case DT_CU_INVALID_VALUE:
    case DT_CU_INVALID_DEVICE:
    case DT_CU_INVALID_CONTEXT:
    case DT_CU_MAP_FAILED:
    case DT_CU_NO_PEER:
    case DT_CU_OPERATING_SYSTEM:
    case DT_CU_INVALID_HANDLE:
    case DT_CU_NOT_PERMITTED:
    case DT_CU_NOT_SUPPORTED:
        return true;
    default:
        return false;
    }
}

static const char *const names[DT_GPU_SHARINGS] = {
    [DT_GPU_SHARE_IPC] = "IPC handle",
    [DT_GPU_SHARE_FD] = "file descriptor",
};

static int alloc(const struct dt_cuda_driver *driver,
                 enum dt_gpu_sharing sharing, size_t size,
                 struct dt_cuda_thing *thing)
{
    dt_cu_ptr ptr = 0;
    if (sharing != DT_GPU_SHARE_IPC)
        return dt_cuda_vmm_alloc(driver, thing->device, size, thing);
    int code = driver->cuMemAlloc_v2(&ptr, size);
    thing->at = (void *)(uintptr_t)ptr;
    return code;
}

static int show(const struct dt_cuda_driver *driver,
                const struct dt_cuda_thing *thing, struct dt_gpu_handle *handle)
{
    struct dt_cu_ipc ipc;
    _Static_assert(sizeof(ipc.bytes) == sizeof(handle->bytes), "handles");
    if (handle->sharing != DT_GPU_SHARE_IPC)
        return dt_cuda_vmm_export(driver, thing, handle);
    int code = driver->cuIpcGetMemHandle(&ipc, (dt_cu_ptr)(uintptr_t)thing->at);
    if (!code)
        memcpy(handle->bytes, ipc.bytes, sizeof(handle->bytes));
    return code;
}

int dt_cuda_free(const struct dt_cuda_driver *driver,
                 const struct dt_cuda_thing *thing)
{
    dt_cu_ptr ptr = (dt_cu_ptr)(uintptr_t)thing->at;
    if (thing->mapped)
        return dt_cuda_vmm_free(driver, thing);
    return thing->kind == DT_CUDA_SHARED ? driver->cuMemFree_v2(ptr)
                                         : driver->cuIpcCloseMemHandle(ptr);
}

/* All of it, or nothing. */
static int make(const struct dt_cuda_driver *driver, size_t size,
                struct dt_cuda_thing *thing, struct dt_gpu_handle *handle)
{
    int code = alloc(driver, (enum dt_gpu_sharing)handle->sharing, size, thing);
    if (code)
        return code;
    code = zero(driver, (dt_cu_ptr)(uintptr_t)thing->at, size);
    if (!code)
        code = show(driver, thing, handle);
    if (code)
        dt_cuda_free(driver, thing);
    return code;
}

dt_result_t dt_cuda_share_alloc(struct dt_gpu *gpu, int device,
                                enum dt_gpu_sharing sharing, size_t size,
                                void **ptr, struct dt_gpu_handle *handle,
                                struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    struct dt_cuda_scope scope;
    struct dt_cuda_thing thing = {.kind = DT_CUDA_SHARED, .device = device};
    struct dt_gpu_handle made = {.sharing = sharing, .fd = -1};
    if (!size || size > SIZE_MAX - BLOCK)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "cannot share %zu bytes of GPU memory", size);
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    made.size = (size + BLOCK - 1) / BLOCK * BLOCK;
    int code = make(&cuda->driver, made.size, &thing, &made);
    dt_cuda_leave(&scope);
    rc = dt_cuda_driver_error(&cuda->driver, code, err,
                              "share %zu bytes of device %d by %s", size,
                              device, names[sharing]);
    if (rc)
        return is_refusal(code) ? DT_ERR_UNSUPPORTED : rc;
    rc = dt_cuda_keep(cuda, &thing, err);
    if (rc) {
        if (made.fd >= 0)
            close(made.fd);
        return rc;
    }
    *handle = made;
    *ptr = thing.at;
    return DT_SUCCESS;
}

dt_result_t dt_cuda_share_free(struct dt_gpu *gpu, void *ptr,
                               struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    int code;
    if (!ptr)
        return DT_SUCCESS;
    if (!dt_cuda_drop(cuda, DT_CUDA_SHARED, ptr, &code))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%p is not shared GPU memory of ours", ptr);
    return dt_cuda_driver_error(&cuda->driver, code, err,
                                "free shared memory at %p", ptr);
}

static int take(const struct dt_cuda_driver *driver,
                const struct dt_gpu_handle *handle, struct dt_cuda_thing *thing)
{
    struct dt_cu_ipc ipc;
    dt_cu_ptr ptr = 0;
    if (handle->sharing != DT_GPU_SHARE_IPC)
        return dt_cuda_vmm_import(driver, thing->device, handle, thing);
    memcpy(ipc.bytes, handle->bytes, sizeof(ipc.bytes));
    int code = driver->cuIpcOpenMemHandle_v2(&ptr, ipc, DT_CU_IPC_LAZY_PEER);
    thing->at = (void *)(uintptr_t)ptr;
    return code;
}

dt_result_t dt_cuda_import(struct dt_gpu *gpu, int device,
                           const struct dt_gpu_handle *handle, void **ptr,
                           struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    struct dt_cuda_scope scope;
    struct dt_cuda_thing thing = {.kind = DT_CUDA_IMPORTED, .device = device};
    if (handle->sharing >= DT_GPU_SHARINGS)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "another process's GPU memory is shared in a way "
                            "that is not known here: %u",
                            (unsigned)handle->sharing);
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code = take(&cuda->driver, handle, &thing);
    dt_cuda_leave(&scope);
    rc = dt_cuda_driver_error(&cuda->driver, code, err,
                              "map another process's GPU memory into device %d "
                              "by %s",
                              device, names[handle->sharing]);
    if (rc)
        return is_refusal(code) ? DT_ERR_UNSUPPORTED : rc;
    rc = dt_cuda_keep(cuda, &thing, err);
    if (!rc)
        *ptr = thing.at;
    return rc;
}

void dt_cuda_release(struct dt_gpu *gpu, void *ptr)
{
    int code;
    dt_cuda_drop(dt_cuda_of(gpu), DT_CUDA_IMPORTED, ptr, &code);
}
