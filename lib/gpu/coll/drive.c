/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* drive.c - what moves the chunks between the streams and the ranks: the
 * thread, and whoever waits. No call of the driver is made here that could
 * wait. */
#include <time.h>

#include "base/env.h"
#include "gpu/coll/comm.h"
#include "coll/engine/engine.h"

/* Further than any number that is still to be given out. */
#define FAR ((uint32_t)1 << 30)

static void set(uint32_t *flag, uint32_t value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

bool dt_gpu_works_on(const struct dt_gpu_comm *gpu)
{
    for (const struct dt_gpu_lane *l = gpu->lanes; l; l = l->next)
        if (l->works.first)
            return true;
    return gpu->exchanges.first != NULL;
}

bool dt_gpu_busy(const struct dt_world *world)
{
    for (const struct dt_gpu_comm *g = dt_gpu_device_of(world)->comms; g;
         g = g->next)
        if (dt_gpu_works_on(g))
            return true;
    return false;
}

bool dt_gpu_hidden(const struct dt_world *world)
{
    for (const struct dt_gpu_comm *g = dt_gpu_device_of(world)->comms; g;
         g = g->next)
        if (g->captured && !g->failed)
            return true;
    return false;
}

/* ---- failure ---- */

void dt_gpu_let_go(struct dt_gpu_comm *gpu, dt_result_t why)
{
    gpu->failed = true;
    if (gpu->nccl)
        dt_gpu_nccl_abort(gpu->nccl);
    if (gpu->node)
        dt_gpu_node_abort(gpu->node);
    while (gpu->exchanges.first)
        dt_gpu_work_retire(&gpu->exchanges, gpu->exchanges.first, why);
    for (struct dt_gpu_lane *lane = gpu->lanes; lane; lane = lane->next) {
        set(lane->done, lane->queued + FAR);
        set(lane->free, lane->queued + FAR);
        lane->starting = NULL;
        while (lane->works.first)
            dt_gpu_work_retire(&lane->works, lane->works.first, why);
    }
}

/* ---- a lane ---- */

/* Chunks whose data is there are started, in order. */
static bool start_chunks(struct dt_gpu_lane *lane)
{
    struct dt_world *world = lane->gpu->comm->world;
    struct dt_error err = {""};
    bool moved = false;
    while (lane->starting && dt_gpu_reached(lane->ready, lane->started + 1)) {
        struct dt_gpu_work *work = lane->starting;
        uint32_t number = lane->started + 1;
        dt_result_t rc = dt_gpu_chunk_start(lane, work, number, &err);
        if (rc != DT_SUCCESS) {
            dt_world_fail(world, rc, &err);
            return true;
        }
        lane->started = number;
        if (number == work->ticket)
            lane->starting = work->next;
        moved = true;
    }
    return moved;
}

/* Chunks that are over are told to the GPU, in order. */
static bool finish_chunks(struct dt_gpu_lane *lane)
{
    struct dt_world *world = lane->gpu->comm->world;
    struct dt_error err = {""};
    bool moved = false;
    while (lane->finished != lane->started) {
        dt_result_t rc = dt_gpu_chunk_test(lane, lane->finished + 1, &err);
        if (rc == DT_IN_PROGRESS)
            break;
        moved = true;
        if (rc != DT_SUCCESS) {
            dt_world_check(world); /* the transport knows who it was */
            dt_world_fail(world, rc, &err);
            break;
        }
        set(lane->done, ++lane->finished);
    }
    return moved;
}

static bool step_lane(struct dt_gpu_lane *lane)
{
    bool moved = start_chunks(lane) | finish_chunks(lane);
    while (lane->works.first && lane->works.first != lane->starting &&
           dt_gpu_reached(lane->free, lane->works.first->ticket)) {
        dt_gpu_work_retire(&lane->works, lane->works.first, DT_SUCCESS);
        moved = true;
    }
    return moved;
}

static bool is_done(const struct dt_gpu_comm *gpu,
                    const struct dt_gpu_work *exchange)
{
    return exchange->by_nccl ? dt_gpu_nccl_done(gpu->nccl, exchange->ticket)
                             : dt_gpu_node_done(gpu->node, exchange->ticket);
}

static bool step(struct dt_gpu_comm *gpu)
{
    bool moved = false;
    for (struct dt_gpu_lane *lane = gpu->lanes; lane; lane = lane->next)
        moved |= lane->works.first && step_lane(lane);
    while (gpu->exchanges.first && is_done(gpu, gpu->exchanges.first)) {
        dt_gpu_work_retire(&gpu->exchanges, gpu->exchanges.first, DT_SUCCESS);
        moved = true;
    }
    if (gpu->twin && gpu->twin->steps != gpu->steps) {
        gpu->steps = gpu->twin->steps;
        moved = true;
    }
    return moved;
}

/* Does anything wait for other ranks? What waits for this rank's own GPU may
 * take as long as the program likes. */
static bool needs_peers(const struct dt_gpu_comm *gpu)
{
    for (const struct dt_gpu_lane *l = gpu->lanes; l; l = l->next)
        if (l->started != l->finished)
            return true;
    return gpu->exchanges.first != NULL;
}

/* Other communicators may move: this one must, too. */
static void keep_time(struct dt_gpu_comm *gpu, bool moved)
{
    struct dt_world *world = gpu->comm->world;
    struct dt_error err;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (moved || !needs_peers(gpu))
        gpu->since = now;
    if (now.tv_sec - gpu->since.tv_sec <= world->timeout)
        return;
    dt_error_set(&err, DT_ERR_TIMED_OUT,
                 "GPU %d waits for other ranks, and nothing has moved for %ld "
                 "s (" DT_ENV_TIMEOUT "): a rank is stopped, or did not call "
                 "the same collective",
                 gpu->device, world->timeout);
    dt_world_fail(world, DT_ERR_TIMED_OUT, &err);
}

void dt_gpu_step(struct dt_world *world)
{
    for (struct dt_gpu_comm *g = dt_gpu_device_of(world)->comms; g;
         g = g->next) {
        if (world->failure != DT_SUCCESS)
            break;
        bool moved = step(g);
        world->device->moves += moved;
        keep_time(g, moved);
    }
    if (world->failure == DT_SUCCESS)
        return;
    for (struct dt_gpu_comm *g = dt_gpu_device_of(world)->comms; g; g = g->next)
        if (!g->failed)
            dt_gpu_let_go(g, world->failure);
}

/* ---- under way ---- */

static dt_result_t append(struct dt_gpu_comm *gpu, struct dt_gpu_works *works,
                          struct dt_gpu_work *work, struct dt_error *err)
{
    struct dt_world *world = gpu->comm->world;
    if (world->failure != DT_SUCCESS) {
        dt_gpu_let_go(gpu, world->failure);
        return dt_comm_failure(gpu->comm, err);
    }
    if (!dt_gpu_works_on(gpu))
        clock_gettime(CLOCK_MONOTONIC, &gpu->since);
    dt_gpu_works_add(works, work);
    dt_progress_wake(world->progress);
    return DT_SUCCESS;
}

dt_result_t dt_gpu_append(struct dt_gpu_lane *lane, struct dt_gpu_work *work,
                          uint32_t chunks, struct dt_error *err)
{
    struct dt_world *world = lane->gpu->comm->world;
    dt_world_lock(world);
    work->lane = lane;
    work->first = lane->queued + 1;
    work->ticket = lane->queued + chunks;
    dt_result_t rc = append(lane->gpu, &lane->works, work, err);
    if (rc == DT_SUCCESS) {
        work->chunks = chunks;
        lane->queued = work->ticket;
        if (!lane->starting && lane->out)
            lane->starting = work;
    }
    dt_world_unlock(world);
    return rc;
}

dt_result_t dt_gpu_append_exchange(struct dt_gpu_work *work,
                                   struct dt_error *err)
{
    struct dt_gpu_comm *gpu = dt_gpu_comm_of(work->base.comm);
    dt_world_lock(gpu->comm->world);
    dt_result_t rc = append(gpu, &gpu->exchanges, work, err);
    work->chunks = rc == DT_SUCCESS;
    dt_world_unlock(gpu->comm->world);
    return rc;
}

void dt_gpu_skip(struct dt_gpu_work *work)
{
    struct dt_gpu_comm *gpu = dt_gpu_comm_of(work->base.comm);
    struct dt_world *world = gpu->comm->world;
    dt_world_lock(world);
    gpu->captured = gpu->node != NULL;
    work->base.status = DT_SUCCESS;
    dt_gpu_works_add(&gpu->ended, work);
    dt_progress_wake(world->progress);
    dt_world_unlock(world);
}

/* ---- waiting ---- */

typedef bool over_fn(const void *what);

/* It is waited for, and not moving, for too long; who waits for peers has been
 * told by keep_time. */
static void give_up(struct dt_world *world)
{
    struct dt_error err;
    dt_error_set(&err, DT_ERR_TIMED_OUT,
                 "nothing moved for %ld s (" DT_ENV_TIMEOUT
                 "): the GPU is busy "
                 "with other work, or has failed, or a rank is stopped",
                 world->timeout);
    dt_world_fail(world, DT_ERR_TIMED_OUT, &err);
}

void dt_gpu_idle(struct dt_backoff *backoff, struct dt_world *world,
                 bool others)
{
    bool look;
    if (others) {
        look = dt_backoff_others(backoff);
        dt_world_let_in(world);
    } else {
        dt_world_unlock(world);
        look = dt_backoff_wait(backoff);
        dt_world_lock(world);
    }
    dt_world_listen(world, 0);
    if (!look)
        return;
    dt_world_check(world);
    dt_gpu_check_alive(world);
}

/* Move things until it is over, or the world has failed; the lock is held. */
static void await(struct dt_world *world, over_fn *over, const void *what)
{
    struct dt_backoff backoff;
    uint64_t moves = world->device->moves;
    /* a GPU wakes nobody */
    dt_backoff_init(&backoff, world->spins, NULL);
    dt_gpu_step(world);
    while (world->failure == DT_SUCCESS && !over(what)) {
        bool others = dt_world_progress(world);
        dt_gpu_step(world);
        if (world->device->moves != moves) {
            dt_backoff_restart(&backoff);
            dt_world_let_in(world);
        } else if (!over(what)) {
            dt_gpu_idle(&backoff, world, others);
            if (backoff.timed && dt_backoff_seconds(&backoff) > world->timeout)
                give_up(world);
        }
        moves = world->device->moves;
    }
    dt_gpu_step(world);
}

static bool is_over(const void *work)
{
    const struct dt_gpu_work *self = work;
    return self->base.status != DT_IN_PROGRESS;
}

/* Its result, and let it go. */
static dt_result_t result(struct dt_gpu_work *work, struct dt_error *err)
{
    dt_result_t status = work->base.status;
    if (status != DT_SUCCESS)
        dt_comm_failure(work->base.comm, err);
    dt_gpu_work_release(work);
    return status;
}

dt_result_t dt_gpu_wait(struct dt_request *request, struct dt_error *err)
{
    struct dt_gpu_work *work = dt_gpu_work_of(request);
    struct dt_world *world = request->comm->world;
    dt_world_lock(world);
    await(world, is_over, work);
    dt_result_t rc = result(work, err);
    dt_world_unlock(world);
    return rc;
}

dt_result_t dt_gpu_test(struct dt_request *request, struct dt_error *err)
{
    struct dt_gpu_work *work = dt_gpu_work_of(request);
    struct dt_world *world = request->comm->world;
    dt_result_t rc = DT_IN_PROGRESS;
    dt_world_lock(world);
    if (!is_over(work)) {
        dt_world_progress(world);
        dt_gpu_step(world);
    }
    if (is_over(work))
        rc = result(work, err);
    dt_world_unlock(world);
    return rc;
}

void dt_gpu_forget(struct dt_request *request)
{
    struct dt_world *world = request->comm->world;
    dt_world_lock(world);
    dt_gpu_work_release(dt_gpu_work_of(request));
    dt_world_unlock(world);
}

static bool is_idle(const void *gpu)
{
    return !dt_gpu_works_on(gpu);
}

static bool all_left(const void *gpu)
{
    return dt_gpu_shutdown_done(gpu);
}

dt_result_t dt_gpu_leave(struct dt_comm *comm, struct dt_error *err)
{
    struct dt_gpu_comm *gpu = dt_gpu_comm_of(comm);
    struct dt_world *world = comm->world;
    if (!gpu)
        return DT_SUCCESS;
    dt_world_lock(world);
    await(world, is_idle, gpu);
    dt_result_t rc = dt_comm_failure(comm, err);
    dt_world_unlock(world);
    if (rc != DT_SUCCESS)
        return rc;
    dt_gpu_nccl_leave(gpu->nccl);
    dt_gpu_node_leave(gpu->node);
    dt_world_lock(world);
    dt_gpu_shutdown_send(gpu);
    await(world, all_left, gpu);
    rc = dt_comm_failure(comm, err);
    dt_world_unlock(world);
    return rc;
}
