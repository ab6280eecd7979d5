/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* liveness.c - check that this rank's GPU and NCCL still work. If one of them
 * dies silently, the flags that all ranks wait for are never written. */
#include <stdlib.h>
#include <time.h>

#include "gpu/coll/comm.h"

/* How often, seconds: few calls, and soon against any DT_TIMEOUT. */
#define PERIOD 0.2

dt_result_t dt_gpu_liveness_open(struct dt_gpu_comm *gpu, struct dt_error *err)
{
    const struct dt_gpu_ops *ops = gpu->gpu->ops;
    void *flag = gpu->flag;
    dt_result_t rc = DT_SUCCESS;
    if (!flag)
        rc = ops->host_alloc(gpu->gpu, gpu->device, sizeof(*gpu->flag), &flag,
                             err);
    gpu->flag = flag;
    if (rc == DT_SUCCESS && !gpu->probe)
        rc = ops->stream_create(gpu->gpu, gpu->device, &gpu->probe, err);
    return rc;
}

void dt_gpu_liveness_close(struct dt_gpu_comm *gpu)
{
    if (gpu->probe)
        gpu->gpu->ops->stream_destroy(gpu->gpu, gpu->probe);
    if (gpu->flag)
        gpu->gpu->ops->host_free(gpu->gpu, gpu->flag);
}

/* The driver looks at a GPU when it is asked about something that is there: so
 * something is put on a stream of its own. How long that takes tells nothing,
 * the GPU may have other work. */
static dt_result_t probe(struct dt_gpu_comm *gpu, struct dt_error *err)
{
    const struct dt_gpu_ops *ops = gpu->gpu->ops;
    bool done = false;
    dt_result_t rc = ops->query(gpu->gpu, gpu->device, gpu->probe, &done, err);
    if (rc == DT_SUCCESS && done)
        rc = ops->signal(gpu->gpu, gpu->device, gpu->flag, 1, gpu->probe, err);
    return rc;
}

/* The driver may take its time with a GPU that is gone, so without the lock. */
static void ask(struct dt_gpu_comm *gpu)
{
    struct dt_world *world = gpu->comm->world;
    struct dt_error err;
    gpu->asking = true;
    dt_world_unlock(world);
    dt_result_t rc = probe(gpu, &err);
    dt_world_lock(world);
    gpu->asking = false;
    if (rc != DT_SUCCESS)
        dt_world_fail(world, rc, &err);
}

/* The loss of a rank is told by its name, if anybody knows it. */
static void check_nccl(struct dt_gpu_comm *gpu)
{
    struct dt_world *world = gpu->comm->world;
    struct dt_error err;
    dt_result_t rc = dt_gpu_nccl_check(gpu->nccl, &err);
    if (rc == DT_SUCCESS)
        return;
    dt_world_check(world);
    dt_world_listen(world, DT_BOOT_EVENT_WAIT);
    dt_world_fail(world, rc, &err);
}

void dt_gpu_check_alive(struct dt_world *world)
{
    struct timespec now;
    for (struct dt_gpu_comm *g = dt_gpu_device_of(world)->comms; g; g = g->next)
        if (g->nccl && g->exchanges.first && world->failure == DT_SUCCESS)
            check_nccl(g);
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (struct dt_gpu_comm *g = dt_gpu_device_of(world)->comms; g;
         g = g->next) {
        double since = (double)(now.tv_sec - g->asked.tv_sec) +
                       1e-9 * (double)(now.tv_nsec - g->asked.tv_nsec);
        if (world->failure != DT_SUCCESS || g->asking || since < PERIOD ||
            !g->probe || !dt_gpu_works_on(g))
            continue;
        g->asked = now;
        ask(g); /* the list may be another one now */
        return;
    }
}
