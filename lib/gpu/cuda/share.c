/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* share.c - memory of devices that processes of a node share. */
#include <string.h>

#include "gpu/cuda/cuda.h"

/* Smaller allocations share a block of this size, all of which a handle would
 * show to the others. */
#define BLOCK ((size_t)2 << 20)

/* The number that this process has for a GPU; -1: it does not see it. */
static dt_result_t find_device(struct dt_gpu *gpu, const char *bus, int *device,
                               struct dt_error *err)
{
    int count;
    dt_result_t rc = gpu->ops->devices(gpu, &count, err);
    *device = -1;
    for (int i = 0; rc == DT_SUCCESS && i < count && *device < 0; i++) {
        char name[24] = "";
        rc = gpu->ops->bus(gpu, i, name, err);
        if (!strcmp(name, bus))
            *device = i;
    }
    return rc;
}

dt_result_t dt_cuda_reaches(struct dt_gpu *gpu, int device, const char *bus,
                            struct dt_error *err)
{
    const struct dt_cuda_driver *driver = &dt_cuda_of(gpu)->driver;
    char own[24] = "";
    int peer, yes = 1;
    dt_result_t rc = gpu->ops->bus(gpu, device, own, err);
    if (rc == DT_SUCCESS)
        rc = find_device(gpu, bus, &peer, err);
    if (rc != DT_SUCCESS || !strcmp(bus, own))
        return rc;
    if (peer < 0)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "GPU %s is not visible here: let every task see "
                            "all GPUs of the node (srun --gpus-per-node and "
                            "--dt-gpus, not --gpus-per-task)",
                            bus);
    int code = driver->cuDeviceCanAccessPeer(&yes, device, peer);
    if (!code && !yes)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "GPU %s cannot read GPU %s: no peer-to-peer "
                            "between them (nvidia-smi topo -p2p r)",
                            own, bus);
    return dt_cuda_driver_error(
        driver, code, err, "tell whether device %d reaches %d", device, peer);
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

/* All of it, or nothing. */
static int make(const struct dt_cuda_driver *driver, size_t size,
                dt_cu_ptr *ptr, struct dt_gpu_handle *handle)
{
    struct dt_cu_ipc ipc;
    _Static_assert(sizeof(ipc) == sizeof(*handle), "handles");
    int code = driver->cuMemAlloc_v2(ptr, size);
    if (code)
        return code;
    code = zero(driver, *ptr, size);
    if (!code && handle)
        code = driver->cuIpcGetMemHandle(&ipc, *ptr);
    if (code)
        driver->cuMemFree_v2(*ptr);
    else if (handle)
        memcpy(handle, &ipc, sizeof(*handle));
    return code;
}

dt_result_t dt_cuda_share_alloc(struct dt_gpu *gpu, int device, size_t size,
                                void **ptr, struct dt_gpu_handle *handle,
                                struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    struct dt_cuda_scope scope;
    dt_cu_ptr at = 0;
    if (!size || size > SIZE_MAX - BLOCK)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "cannot share %zu bytes of GPU memory", size);
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    int code =
        make(&cuda->driver, (size + BLOCK - 1) / BLOCK * BLOCK, &at, handle);
    dt_cuda_leave(&scope);
    rc = dt_cuda_driver_error(&cuda->driver, code, err,
                              "share %zu bytes of device %d by IPC handle",
                              size, device);
    if (rc)
        return is_refusal(code) ? DT_ERR_UNSUPPORTED : rc;
    const struct dt_cuda_thing thing = {
        .kind = DT_CUDA_SHARED, .device = device, .at = (void *)(uintptr_t)at};
    rc = dt_cuda_keep(cuda, &thing, err);
    if (!rc)
        *ptr = thing.at;
    return rc;
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

dt_result_t dt_cuda_import(struct dt_gpu *gpu, int device,
                           const struct dt_gpu_handle *handle, void **ptr,
                           struct dt_error *err)
{
    struct dt_cuda *cuda = dt_cuda_of(gpu);
    struct dt_cuda_scope scope;
    struct dt_cu_ipc ipc;
    dt_cu_ptr at = 0;
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    memcpy(&ipc, handle, sizeof(ipc));
    int code =
        cuda->driver.cuIpcOpenMemHandle_v2(&at, ipc, DT_CU_IPC_LAZY_PEER);
    dt_cuda_leave(&scope);
    rc = dt_cuda_driver_error(&cuda->driver, code, err,
                              "map another process's GPU memory into device %d "
                              "by IPC handle",
                              device);
    if (rc)
        return is_refusal(code) ? DT_ERR_UNSUPPORTED : rc;
    const struct dt_cuda_thing thing = {.kind = DT_CUDA_IMPORTED,
                                        .device = device,
                                        .at = (void *)(uintptr_t)at};
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
