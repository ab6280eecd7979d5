/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* module.c - load the kernels into a device, and launch one. */
#include "gpu/cuda/cuda.h"
#include "gpu/cuda/image.h"

/* All at once: a driver that loads a kernel when it is first launched may wait
 * for one that runs, and that one for a peer. */
static int find_kernels(const struct dt_cuda_driver *driver,
                        struct dt_cuda_device *device)
{
    int code = 0;
    for (int i = 0; !code && i < DT_KERNELS; i++)
        code = driver->cuModuleGetFunction(&device->kernel[i], device->module,
                                           dt_kernel_name((enum dt_kernel)i));
    return code;
}

static int load_locked(const struct dt_cuda_driver *driver,
                       struct dt_cuda_device *device)
{
    int code = 0;
    if (!device->module)
        code = driver->cuModuleLoadData(&device->module, dt_cuda_image);
    if (!code)
        code = find_kernels(driver, device);
    device->loaded = !code;
    return code;
}

static dt_result_t load(const struct dt_cuda_driver *driver,
                        struct dt_cuda_device *device, struct dt_error *err)
{
    int code = 0;
    if (device->loaded)
        return DT_SUCCESS;
    pthread_mutex_lock(&device->lock);
    if (!device->loaded)
        code = load_locked(driver, device);
    pthread_mutex_unlock(&device->lock);
    if ((code == DT_CU_INVALID_IMAGE || code == DT_CU_INVALID_PTX) &&
        !dt_cuda_image_size)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "CUDA: slurm-dt was built without nvcc, so there "
                            "are no kernels: build it where CUDA's toolkit is");
    return dt_cuda_driver_error(driver, code, err, "load the kernels");
}

dt_result_t dt_cuda_launch(struct dt_gpu *gpu, int device,
                           enum dt_kernel kernel, unsigned blocks,
                           unsigned threads, const void *args, size_t size,
                           dt_stream_t stream, struct dt_error *err)
{
    struct dt_cuda_scope scope;
    /* the driver only reads it */
    void *extra[] = {DT_CU_PARAM_POINTER, (void *)(uintptr_t)args,
                     DT_CU_PARAM_SIZE, &size, DT_CU_PARAM_END};
    dt_result_t rc = dt_cuda_enter(gpu, device, &scope, err);
    if (rc)
        return rc;
    rc = load(scope.driver, scope.device, err);
    if (!rc) {
        int code = scope.driver->cuLaunchKernel(scope.device->kernel[kernel],
                                                blocks, 1, 1, threads, 1, 1, 0,
                                                stream, NULL, extra);
        rc = dt_cuda_driver_error(scope.driver, code, err,
                                  "launch %s on device %d",
                                  dt_kernel_name(kernel), device);
    }
    dt_cuda_leave(&scope);
    return rc;
}
