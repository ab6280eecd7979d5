/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vmm.c - memory of devices by the driver's virtual memory management:
 * physical memory, which each process maps at an address that it reserves. */
#include <fcntl.h>
#include <string.h>

#include "gpu/cuda/cuda.h"

static int check(const struct dt_cuda_driver *driver, int device)
{
    int maps = 0, shares = 0;
    if (!driver->vmm)
        return DT_CU_NOT_SUPPORTED;
    int code = driver->cuDeviceGetAttribute(&maps, DT_CU_HAS_VMM, device);
    if (!code)
        code = driver->cuDeviceGetAttribute(&shares, DT_CU_HAS_FD, device);
    return !code && !(maps && shares) ? DT_CU_NOT_SUPPORTED : code;
}

static int map_at(const struct dt_cuda_driver *driver, int device,
                  dt_cu_ptr ptr, const struct dt_cuda_thing *thing)
{
    const struct dt_cu_access access = {.location = {DT_CU_ON_DEVICE, device},
                                        .flags = DT_CU_READ_WRITE};
    int code = driver->cuMemMap(ptr, thing->mapped, 0, thing->allocation, 0);
    if (code)
        return code;
    code = driver->cuMemSetAccess(ptr, thing->mapped, &access, 1);
    if (code)
        driver->cuMemUnmap(ptr, thing->mapped);
    return code;
}

/* An address for the allocation, where device may use it. */
static int map_it(const struct dt_cuda_driver *driver, int device,
                  struct dt_cuda_thing *thing)
{
    dt_cu_ptr ptr = 0;
    int code = driver->cuMemAddressReserve(&ptr, thing->mapped, 0, 0, 0);
    if (code)
        return code;
    code = map_at(driver, device, ptr, thing);
    if (code)
        driver->cuMemAddressFree(ptr, thing->mapped);
    else
        thing->at = (void *)(uintptr_t)ptr;
    return code;
}

static int map_or_release(const struct dt_cuda_driver *driver, int device,
                          struct dt_cuda_thing *thing)
{
    int code = map_it(driver, device, thing);
    if (code)
        driver->cuMemRelease(thing->allocation);
    return code;
}

int dt_cuda_vmm_alloc(const struct dt_cuda_driver *driver, int device,
                      size_t size, struct dt_cuda_thing *thing)
{
    const struct dt_cu_properties properties = {
        .type = DT_CU_PINNED,
        .handles = DT_CU_HANDLE_FD,
        .location = {DT_CU_ON_DEVICE, device},
    };
    size_t block = 0;
    int code = check(driver, device);
    if (!code)
        code = driver->cuMemGetAllocationGranularity(&block, &properties,
                                                     DT_CU_MINIMUM);
    if (code)
        return code;
    if (!block || size > SIZE_MAX - block)
        return DT_CU_INVALID_VALUE;
    thing->mapped = (size + block - 1) / block * block;
    code =
        driver->cuMemCreate(&thing->allocation, thing->mapped, &properties, 0);
    return code ? code : map_or_release(driver, device, thing);
}

int dt_cuda_vmm_export(const struct dt_cuda_driver *driver,
                       const struct dt_cuda_thing *thing,
                       struct dt_gpu_handle *handle)
{
    int fd = -1;
    handle->size = thing->mapped;
    int code = driver->cuMemExportToShareableHandle(&fd, thing->allocation,
                                                    DT_CU_HANDLE_FD, 0);
    if (code)
        return code;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    handle->fd = fd;
    return DT_CU_OK;
}

int dt_cuda_vmm_import(const struct dt_cuda_driver *driver, int device,
                       const struct dt_gpu_handle *handle,
                       struct dt_cuda_thing *thing)
{
    int code = check(driver, device);
    if (!code)
        code = driver->cuMemImportFromShareableHandle(
            &thing->allocation, (void *)(intptr_t)handle->fd, DT_CU_HANDLE_FD);
    if (code)
        return code;
    thing->mapped = handle->size;
    return map_or_release(driver, device, thing);
}

int dt_cuda_vmm_free(const struct dt_cuda_driver *driver,
                     const struct dt_cuda_thing *thing)
{
    dt_cu_ptr ptr = (dt_cu_ptr)(uintptr_t)thing->at;
    /* the other ways to free memory wait for what uses it; this one may not */
    driver->cuCtxSynchronize();
    int code = driver->cuMemUnmap(ptr, thing->mapped);
    if (code)
        return code;
    code = driver->cuMemAddressFree(ptr, thing->mapped);
    int released = driver->cuMemRelease(thing->allocation);
    return code ? code : released;
}
