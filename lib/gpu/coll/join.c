/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* join.c - what a communicator has for its GPU: made when it is first
 * needed, given back when it goes. */
#include <stdlib.h>

#include "gpu/coll/comm.h"
#include "coll/engine/engine.h"

/* A flag has a cache line of its own, and that of its neighbour. */
#define FLAG 128
#define PAGE 4096

/* ---- lanes ---- */

static void close_lane(struct dt_gpu_lane *lane)
{
    struct dt_gpu *gpu = lane->gpu->gpu;
    /* the streams wait for what is on them; dt_gpu_let_go sees to its end */
    if (lane->out)
        gpu->ops->stream_destroy(gpu, lane->out);
    if (lane->in)
        gpu->ops->stream_destroy(gpu, lane->in);
    for (int way = 0; way < 2; way++)
        if (lane->slots[way])
            gpu->ops->host_free(gpu, lane->slots[way]);
    if (lane->page)
        gpu->ops->host_free(gpu, lane->page);
    for (size_t i = 0; i < DT_GPU_SLOTS; i++)
        free(lane->chunks[i].messages);
    free(lane);
}

static dt_result_t open_slots(struct dt_gpu_lane *lane, struct dt_error *err)
{
    struct dt_gpu *gpu = lane->gpu->gpu;
    const enum dt_coll without[] = {DT_COLL_RECV, DT_COLL_SEND};
    dt_result_t rc = DT_SUCCESS;
    for (int way = 0; rc == DT_SUCCESS && way < 2; way++) {
        void *slots;
        if (lane->kind == without[way])
            continue;
        rc = gpu->ops->host_alloc(gpu, lane->gpu->device,
                                  DT_GPU_SLOTS * lane->slot, &slots, err);
        if (rc == DT_SUCCESS)
            lane->slots[way] = slots;
    }
    return rc;
}

static dt_result_t open_streams(struct dt_gpu_lane *lane, struct dt_error *err)
{
    struct dt_gpu *gpu = lane->gpu->gpu;
    const int device = lane->gpu->device;
    bool alone = lane->gpu->comm->size == 1;
    void *page;
    dt_result_t rc = gpu->ops->host_alloc(gpu, device, PAGE, &page, err);
    if (rc != DT_SUCCESS)
        return rc;
    lane->page = page;
    lane->ready = page;
    lane->done = (uint32_t *)((char *)page + FLAG);
    lane->free = (uint32_t *)((char *)page + 2 * FLAG);
    rc = gpu->ops->stream_create(gpu, device, &lane->in, err);
    if (rc != DT_SUCCESS || alone) /* solo.c needs no more */
        return rc;
    rc = gpu->ops->stream_create(gpu, device, &lane->out, err);
    if (rc != DT_SUCCESS || lane->direct)
        return rc;
    return open_slots(lane, err);
}

static dt_result_t open_lane(struct dt_gpu_comm *gpu, enum dt_coll kind,
                             size_t peer, struct dt_gpu_lane **out,
                             struct dt_error *err)
{
    bool collective = kind == DT_COLL_ALLREDUCE;
    struct dt_gpu_lane *lane = calloc(1, sizeof(*lane));
    if (!lane)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a GPU");
    lane->gpu = gpu;
    lane->kind = kind;
    lane->peer = peer;
    lane->direct = !collective && dt_gpu_direct_to(gpu, peer);
    lane->slot = collective ? DT_GPU_SLOT : DT_GPU_SLOT_P2P;
    dt_gpu_works_init(&lane->works);
    dt_result_t rc = dt_gpu_liveness_open(gpu, err);
    if (rc == DT_SUCCESS)
        rc = open_streams(lane, err);
    if (rc != DT_SUCCESS) {
        close_lane(lane);
        return rc;
    }
    dt_world_lock(gpu->comm->world);
    lane->next = gpu->lanes;
    gpu->lanes = lane;
    dt_world_unlock(gpu->comm->world);
    *out = lane;
    return DT_SUCCESS;
}

dt_result_t dt_gpu_lane(struct dt_gpu_comm *gpu, enum dt_coll coll, size_t peer,
                        struct dt_gpu_lane **out, struct dt_error *err)
{
    bool p2p = coll == DT_COLL_SEND || coll == DT_COLL_RECV;
    enum dt_coll kind = p2p ? coll : DT_COLL_ALLREDUCE;
    struct dt_gpu_lane *lane = gpu->lanes;
    while (lane && (lane->kind != kind || (p2p && lane->peer != peer)))
        lane = lane->next;
    if (!lane)
        return open_lane(gpu, kind, peer, out, err);
    *out = lane;
    return DT_SUCCESS;
}

/* ---- all of it ---- */

dt_result_t dt_gpu_join(struct dt_comm *comm, int device,
                        struct dt_gpu_comm **out, struct dt_error *err)
{
    struct dt_world *world = comm->world;
    struct dt_gpu_comm *gpu = dt_gpu_comm_of(comm);
    if (gpu && gpu->device != device)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "GPU %d: this communicator works on GPU %d since "
                            "its first call: split off another for each GPU",
                            device, gpu->device);
    if (gpu) {
        *out = gpu;
        return DT_SUCCESS;
    }
    dt_result_t rc = dt_progress_need(world, err);
    if (rc != DT_SUCCESS)
        return rc;
    gpu = calloc(1, sizeof(*gpu));
    if (!gpu)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a GPU");
    gpu->comm = comm;
    gpu->gpu = world->device->gpu;
    gpu->device = device;
    dt_gpu_works_init(&gpu->exchanges);
    dt_gpu_works_init(&gpu->ended);
    dt_world_lock(world);
    gpu->next = dt_gpu_device_of(world)->comms;
    dt_gpu_device_of(world)->comms = gpu;
    comm->device = gpu;
    dt_world_unlock(world);
    *out = gpu;
    return DT_SUCCESS;
}

static dt_result_t connect_ways(struct dt_gpu_comm *gpu, struct dt_comm *twin,
                                struct dt_error *err)
{
    struct dt_world *world = twin->world;
    struct dt_error why = {""};
    struct dt_gpu_lane *lane;
    dt_result_t rc = dt_gpu_lane(gpu, DT_COLL_ALLREDUCE, 0, &lane, &why);
    if (rc == DT_SUCCESS && !gpu->shutdown)
        rc = dt_gpu_shutdown_open(gpu, &why);
    rc = dt_gpu_agree(twin, rc, &why, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpu_open_ways(gpu, twin, err);
    if (rc == DT_SUCCESS && (gpu->node || gpu->nccl)) {
        dt_world_lock(world);
        dt_gpu_shutdown_expect(gpu);
        dt_world_unlock(world);
    }
    return rc;
}

dt_result_t dt_gpu_connect(struct dt_gpu_comm *gpu, struct dt_error *err)
{
    if (gpu->connected || gpu->comm->size == 1) {
        gpu->connected = true;
        return DT_SUCCESS;
    }
    struct dt_comm *twin;
    dt_result_t rc = dt_comm_twin(gpu->comm, &twin, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = connect_ways(gpu, twin, err);
    if (rc != DT_SUCCESS) {
        dt_gpu_nccl_close(gpu->nccl);
        dt_gpu_node_close(gpu->node);
        gpu->nccl = NULL;
        gpu->node = NULL;
        dt_comm_leave(twin, NULL); /* others still read its last result */
        dt_comm_close(twin);
        return rc;
    }
    gpu->twin = twin;
    gpu->connected = true;
    return DT_SUCCESS;
}

static void unlink_comm(struct dt_gpu_comm *gpu)
{
    struct dt_gpu_comm **at = &dt_gpu_device_of(gpu->comm->world)->comms;
    while (*at != gpu)
        at = &(*at)->next;
    *at = gpu->next;
}

void dt_gpu_close_comm(struct dt_comm *comm)
{
    struct dt_gpu_comm *gpu = dt_gpu_comm_of(comm);
    if (!gpu)
        return;
    dt_world_lock(comm->world);
    while (gpu->asking) {
        dt_world_unlock(comm->world);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        dt_world_lock(comm->world);
    }
    /* what is freed below waits for all that is on the GPU */
    dt_gpu_step(comm->world);
    if (dt_gpu_works_on(gpu))
        dt_gpu_let_go(gpu, DT_ERR_PROC_FAILED);
    while (gpu->ended.first)
        dt_gpu_work_release(gpu->ended.first);
    unlink_comm(gpu);
    comm->device = NULL;
    dt_world_unlock(comm->world);
    dt_gpu_nccl_close(gpu->nccl);
    dt_gpu_node_close(gpu->node);
    while (gpu->lanes) {
        struct dt_gpu_lane *lane = gpu->lanes;
        gpu->lanes = lane->next;
        close_lane(lane);
    }
    dt_gpu_liveness_close(gpu);
    dt_gpu_shutdown_close(gpu);
    dt_comm_close(gpu->twin);
    free(gpu);
}
