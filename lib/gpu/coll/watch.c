/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watch.c - a receive from each peer, from the start until it leaves: the
 * transports look only at peers that something waits for, and know nothing of
 * GPUs that wait for each other. */
#include <stdlib.h>

#include "gpu/coll/comm.h"

static uint64_t tag_of(const struct dt_gpu_comm *gpu)
{
    return (uint64_t)gpu->comm->id << DT_TAG_COMM_SHIFT | DT_GPU_TAG_WATCH;
}

dt_result_t dt_gpu_watch_open(struct dt_gpu_comm *gpu, struct dt_error *err)
{
    const struct dt_comm *comm = gpu->comm;
    gpu->watch = calloc(2 * comm->size, sizeof(*gpu->watch));
    gpu->bye = calloc(2 * comm->size, 1);
    if (!gpu->watch || !gpu->bye) {
        dt_gpu_watch_close(gpu);
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory to watch over %zu ranks", comm->size);
    }
    return DT_SUCCESS;
}

void dt_gpu_watch_start(struct dt_gpu_comm *gpu)
{
    const struct dt_comm *comm = gpu->comm;
    gpu->watching = true;
    for (size_t r = 0; r < comm->size; r++) {
        struct dt_tl *tl = dt_world_route(comm->world, comm->members[r]);
        if (r != comm->rank)
            tl->ops->irecv(tl, comm->members[r], tag_of(gpu), &gpu->bye[r], 1,
                           &gpu->watch[r]);
    }
}

void dt_gpu_watch_leave(struct dt_gpu_comm *gpu)
{
    const struct dt_comm *comm = gpu->comm;
    for (size_t r = 0; gpu->watching && r < comm->size; r++) {
        struct dt_tl *tl = dt_world_route(comm->world, comm->members[r]);
        if (r != comm->rank)
            tl->ops->isend(tl, comm->members[r], tag_of(gpu),
                           &gpu->bye[comm->size + r], 1,
                           &gpu->watch[comm->size + r]);
    }
}

bool dt_gpu_watch_over(const struct dt_gpu_comm *gpu)
{
    for (size_t i = 0; gpu->watching && i < 2 * gpu->comm->size; i++)
        if (gpu->watch[i].status == DT_IN_PROGRESS)
            return false;
    return true;
}

void dt_gpu_watch_close(struct dt_gpu_comm *gpu)
{
    free(gpu->watch);
    free(gpu->bye);
    gpu->watch = NULL;
    gpu->bye = NULL;
}
