/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* device.c - the entry of the module for collectives: a world gets its device.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/coll/comm.h"
#include "gpu/host.h"

static void close_device(struct dt_device *device)
{
    struct dt_gpu_device *self = (struct dt_gpu_device *)device;
    while (self->comms)
        dt_gpu_close_comm(self->comms->comm);
    device->gpu->ops->close(device->gpu);
    free(self);
}

static const struct dt_device_ops ops = {
#define MEMBER(name) .name = dt_gpu_##name,
    DT_GPU_DEVICE_OPS(MEMBER)
#undef MEMBER
        .close = close_device,
};

dt_result_t dt_gpu_open_device(const struct dt_gpu_host *functions,
                               struct dt_gpu *gpu, struct dt_device **out,
                               struct dt_error *err)
{
    static const struct dt_gpu_layout layout = DT_GPU_LAYOUT;
    if (memcmp(&functions->layout, &layout, sizeof(layout)) != 0)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            DT_GPU_MODULE " is of another version of "
                                          "slurm-dt: install both again");
    struct dt_gpu_device *device = calloc(1, sizeof(*device));
    if (!device)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a GPU");
    dt_gpu_set_host(functions);
    device->base.ops = &ops;
    device->base.gpu = gpu;
    *out = &device->base;
    return DT_SUCCESS;
}
