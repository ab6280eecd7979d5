/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* copy.c - between this process's buffers and the program's memory. */
#include "ckpt/copy.h"

#include <stdlib.h>
#include <string.h>

#include "exec/gpu.h"

#define DEVICES 64

struct dt_copy {
    struct dt_gpu *gpu;    /* NULL: none here */
    bool pending[DEVICES]; /* copies are on the default stream of it */
};

dt_result_t dt_copy_open(struct dt_copy **copy, struct dt_error *err)
{
    struct dt_copy *new = calloc(1, sizeof(*new));
    if (!new)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    /* where no GPU can be used no tensor is on one: GPUs are granted on nodes
     * without a driver, too */
    if (dt_gpu_load(&new->gpu, NULL) != DT_SUCCESS)
        new->gpu = NULL;
    *copy = new;
    return DT_SUCCESS;
}

void dt_copy_close(struct dt_copy *copy)
{
    if (!copy)
        return;
    dt_gpu_unload(copy->gpu);
    free(copy);
}

/* The device whose memory this is, or -1: the host's. */
static dt_result_t device_of(struct dt_copy *copy, const void *data, size_t len,
                             int *device, struct dt_error *err)
{
    struct dt_gpu_place place;
    *device = -1;
    if (!copy->gpu || len == 0)
        return DT_SUCCESS;
    dt_result_t rc = copy->gpu->ops->locate(copy->gpu, data, len, &place, err);
    if (rc == DT_SUCCESS && place.kind == DT_GPU_MEMORY)
        *device = place.device;
    return rc;
}

bool dt_copy_is_host(struct dt_copy *copy, const void *data, size_t len)
{
    int device;
    return device_of(copy, data, len, &device, NULL) == DT_SUCCESS &&
           device < 0;
}

dt_result_t dt_copy_begin(struct dt_copy *copy, void *to, const void *from,
                          size_t len, struct dt_error *err)
{
    int source, target;
    if (len == 0)
        return DT_SUCCESS;
    dt_result_t rc = device_of(copy, from, len, &source, err);
    if (rc == DT_SUCCESS)
        rc = device_of(copy, to, len, &target, err);
    if (rc != DT_SUCCESS)
        return rc;
    int device = source >= 0 ? source : target;
    if (device < 0) {
        memcpy(to, from, len);
        return DT_SUCCESS;
    }
    if (device >= DEVICES)
        return dt_error_set(err, DT_ERR_UNSUPPORTED, "GPU %d is one too many",
                            device);
    const struct dt_gpu_copy plain = {
        .dst = to, .src = from, .len = len, .rows = 1};
    rc = copy->gpu->ops->copy(copy->gpu, device, &plain, DT_STREAM_NONE, err);
    copy->pending[device] |= rc == DT_SUCCESS;
    return rc;
}

dt_result_t dt_copy_finish(struct dt_copy *copy, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (int d = 0; d < DEVICES; d++) {
        if (!copy->pending[d])
            continue;
        copy->pending[d] = false;
        dt_result_t end =
            copy->gpu->ops->finish(copy->gpu, d, DT_STREAM_NONE, err);
        rc = rc == DT_SUCCESS ? end : rc;
    }
    return rc;
}
