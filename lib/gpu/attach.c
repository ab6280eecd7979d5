/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* attach.c - libdt's side of the module: what it may call, and what a process
 * is told that has no GPU. */
#include "gpu/attach.h"

#include "gpu/host.h"

static const struct dt_gpu_host host = {.layout = DT_GPU_LAYOUT,
#define FUNCTION(type, name, params, args) .name = dt_##name,
                                        DT_GPU_HOST(FUNCTION)
#undef FUNCTION
};

static dt_result_t open_device(struct dt_gpu *gpu, struct dt_device **device,
                               struct dt_error *err)
{
    dt_gpu_open_device_fn *open =
        (dt_gpu_open_device_fn *)dt_gpu_symbol(DT_GPU_DEVICE_SYMBOL);
    if (!open)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            DT_GPU_MODULE " has no collectives: install "
                                          "slurm-dt completely");
    return open(&host, gpu, device, err);
}

void dt_gpu_attach(struct dt_world *world)
{
    struct dt_error why = {"this process sees none"};
    struct dt_gpu *gpu = NULL;
    dt_result_t rc = dt_gpu_load(&gpu, &why);
    if (rc == DT_SUCCESS && gpu) {
        rc = open_device(gpu, &world->device, &why);
        if (rc != DT_SUCCESS)
            dt_gpu_unload(gpu);
    }
    if (!world->device)
        dt_error_set(&world->no_device, DT_ERR_UNSUPPORTED, "no GPU (%.400s)",
                     why.text);
}
