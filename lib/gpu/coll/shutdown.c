/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shutdown.c - the shutdown messages. A receive from each peer is posted from
 * the start until the peer leaves: the transports check only peers that a
 * message is expected from, and cannot know of GPUs that wait for each other.
 */
#include <stdlib.h>

#include "gpu/coll/comm.h"

static uint64_t tag_of(const struct dt_gpu_comm *gpu)
{
    return (uint64_t)gpu->comm->id << DT_TAG_COMM_SHIFT | DT_GPU_TAG_SHUTDOWN;
}

dt_result_t dt_gpu_shutdown_open(struct dt_gpu_comm *gpu, struct dt_error *err)
{
    const struct dt_comm *comm = gpu->comm;
    gpu->shutdown = calloc(2 * comm->size, sizeof(*gpu->shutdown));
    gpu->shutdown_byte = calloc(2 * comm->size, 1);
    if (!gpu->shutdown || !gpu->shutdown_byte) {
        dt_gpu_shutdown_close(gpu);
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for messages of %zu ranks", comm->size);
    }
    return DT_SUCCESS;
}

void dt_gpu_shutdown_expect(struct dt_gpu_comm *gpu)
{
    const struct dt_comm *comm = gpu->comm;
    gpu->expecting = true;
    for (size_t r = 0; r < comm->size; r++) {
        struct dt_tl *tl = dt_world_route(comm->world, comm->members[r]);
        if (r != comm->rank)
            tl->ops->irecv(tl, comm->members[r], tag_of(gpu),
                           &gpu->shutdown_byte[r], 1, &gpu->shutdown[r]);
    }
}

void dt_gpu_shutdown_send(struct dt_gpu_comm *gpu)
{
    const struct dt_comm *comm = gpu->comm;
    for (size_t r = 0; gpu->expecting && r < comm->size; r++) {
        struct dt_tl *tl = dt_world_route(comm->world, comm->members[r]);
        if (r != comm->rank)
            tl->ops->isend(tl, comm->members[r], tag_of(gpu),
                           &gpu->shutdown_byte[comm->size + r], 1,
                           &gpu->shutdown[comm->size + r]);
    }
}

bool dt_gpu_shutdown_done(const struct dt_gpu_comm *gpu)
{
    for (size_t i = 0; gpu->expecting && i < 2 * gpu->comm->size; i++)
        if (gpu->shutdown[i].status == DT_IN_PROGRESS)
            return false;
    return true;
}

void dt_gpu_shutdown_close(struct dt_gpu_comm *gpu)
{
    free(gpu->shutdown);
    free(gpu->shutdown_byte);
    gpu->shutdown = NULL;
    gpu->shutdown_byte = NULL;
}
