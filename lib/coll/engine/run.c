/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* run.c - a collective on a communicator, from its start to its end.
 *
 *   idle --start--> active --complete--> idle again, for the same shape
 *                          --failed----> destroyed; the world fails
 *
 * A blocking allreduce inside the node, with nothing else active on comm, uses
 * nothing but the board. It needs no lock, no request and no schedule, and is
 * the shortest way from call to result. */
#include <sched.h>

#include "base/notice.h"
#include "coll/engine/backoff.h"
#include "coll/engine/comm.h"
#include "coll/engine/progress.h"
#include "coll/engine/tag.h"

/* Idle requests that a communicator keeps: enough for every shape of a training
 * step. */
#define MAX_IDLE 64

/* After so many tests, check whether the peers are alive. */
#define CHECK_TESTS 1024

/* ---- idle requests ---- */

static bool same_shape(const struct dt_shape *a, const struct dt_shape *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op &&
           a->count == b->count && a->root == b->root &&
           a->in_place == b->in_place && a->prescale == b->prescale &&
           a->postscale == b->postscale;
}

/* Does it have a count per rank? Its schedule is then used only once. */
static bool is_uneven(const struct dt_shape *shape)
{
    return shape->sendcounts || shape->recvcounts;
}

/* Take a request of that shape off the idle list; NULL: there is none. */
static struct dt_request *take_idle(struct dt_comm *comm,
                                    const struct dt_shape *shape)
{
    struct dt_request **at = &comm->idle;
    while (*at && !same_shape(&(*at)->shape, shape))
        at = &(*at)->next;
    struct dt_request *request = *at;
    if (request) {
        *at = request->next;
        comm->nidle--;
    }
    return request;
}

/* The list has the newest first. The one that was idle for longest is freed. */
static void put_idle(struct dt_comm *comm, struct dt_request *request)
{
    if (is_uneven(&request->shape)) {
        dt_request_destroy(request);
        return;
    }
    request->next = comm->idle;
    comm->idle = request;
    if (++comm->nidle <= MAX_IDLE)
        return;
    struct dt_request **last = &comm->idle;
    while ((*last)->next)
        last = &(*last)->next;
    dt_request_destroy(*last);
    *last = NULL;
    comm->nidle--;
}

/* ---- start ---- */

/* Make progress until the request has ended; the lock is held. */
static void await(struct dt_comm *comm, const struct dt_request *request)
{
    struct dt_world *world = comm->world;
    struct dt_backoff backoff;
    uint64_t steps = comm->steps;
    dt_backoff_init(&backoff,
                    comm->layout.nnodes > 1 ? world->far_spins : world->spins,
                    dt_world_sleeper(world));
    while (request->status == DT_IN_PROGRESS) {
        /* a transport's keepalive moves something, too, but not this request */
        bool others = dt_world_progress(world);
        if (comm->steps != steps) {
            dt_backoff_restart(&backoff);
            dt_world_let_in(world);
        } else if (request->status == DT_IN_PROGRESS) {
            dt_backoff_idle(&backoff, world, others);
        }
        steps = comm->steps;
    }
}

/* A tag may be used again when the collective that had it has ended here, as
 * messages of one peer and tag keep their order. dt_send and dt_recv have a
 * slot of their own. */
static void free_tag(struct dt_comm *comm, uint64_t tag)
{
    struct dt_request *r = comm->active;
    while (r && (r->tag != tag || dt_shape_is_message(&r->shape) ||
                 r->status != DT_IN_PROGRESS))
        r = r->next;
    if (r)
        await(comm, r);
}

/* Assign the request its tag and its rounds. */
static void number(struct dt_comm *comm, struct dt_request *request)
{
    request->tag = (uint64_t)comm->id << DT_TAG_COMM_SHIFT;
    request->round = comm->round;
    if (dt_shape_is_message(&request->shape))
        return;
    uint32_t sequence = comm->sequence++ & ((1u << DT_TAG_SEQ_BITS) - 1);
    request->tag |= (uint64_t)sequence << DT_TAG_SLOT_BITS;
    free_tag(comm, request->tag);
    comm->round += request->rounds;
}

static void enlist(struct dt_comm *comm, struct dt_request *request)
{
    request->next = NULL;
    *comm->last = request;
    comm->last = &request->next;
}

static void delist(struct dt_comm *comm, struct dt_request *request)
{
    struct dt_request **at = &comm->active;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (comm->last == &request->next)
        comm->last = at;
}

dt_result_t dt_comm_begin(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **out, struct dt_error *err)
{
    if (comm->world->failure != DT_SUCCESS)
        return dt_comm_failure(comm, err);
    struct dt_request *request =
        is_uneven(shape) ? NULL : take_idle(comm, shape);
    if (!request) {
        dt_result_t rc = dt_request_create(comm, shape, &request, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    number(comm, request);
    dt_request_begin(request, sendbuf, recvbuf);
    enlist(comm, request);
    dt_request_progress(request);
    dt_progress_wake(comm->world->progress);
    *out = request;
    return DT_SUCCESS;
}

dt_result_t dt_comm_start(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **out, struct dt_error *err)
{
    dt_world_lock(comm->world);
    dt_result_t rc = dt_comm_begin(comm, shape, sendbuf, recvbuf, out, err);
    dt_world_unlock(comm->world);
    return rc;
}

/* Take an ended request off the active list, and make it idle or fail. */
dt_result_t dt_comm_retire(struct dt_comm *comm, struct dt_request *request,
                           struct dt_error *err)
{
    delist(comm, request);
    if (request->status == DT_SUCCESS && comm->board)
        dt_comm_release(comm);
    if (request->status == DT_SUCCESS) {
        if (request->shape.coll == DT_COLL_ALLREDUCE && request->notice)
            comm->leave = true;
        put_idle(comm, request);
        return DT_SUCCESS;
    }
    if (request->is_local)
        dt_local_drop(&request->local);
    dt_world_check(comm->world); /* names the rank that has ended */
    dt_world_fail(comm->world, request->status, NULL);
    dt_request_destroy(request);
    return dt_comm_failure(comm, err);
}

dt_result_t dt_comm_test(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err)
{
    dt_result_t rc = DT_IN_PROGRESS;
    dt_world_lock(comm->world);
    if (request->status == DT_IN_PROGRESS) {
        dt_world_progress(comm->world);
        dt_world_listen(comm->world, 0);
        if (++comm->polls % CHECK_TESTS == 0)
            dt_world_check(comm->world);
    }
    if (request->status != DT_IN_PROGRESS)
        rc = dt_comm_retire(comm, request, err);
    dt_world_unlock(comm->world);
    return rc;
}

dt_result_t dt_comm_wait(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err)
{
    dt_world_lock(comm->world);
    await(comm, request);
    dt_result_t rc = dt_comm_retire(comm, request, err);
    dt_world_unlock(comm->world);
    return rc;
}

/* ---- the blocking allreduce inside the node ---- */

/* Where ranks share cores: how often to check the board before making progress
 * of everything else. */
#define YIELDS 100

static bool is_short(const struct dt_comm *comm, const struct dt_shape *shape)
{
    return comm->board && comm->layout.nnodes == 1 && !comm->active &&
           comm->world->failure == DT_SUCCESS &&
           dt_local_serves(comm->board, shape);
}

static void release_local(struct dt_comm *comm, const struct dt_local *local)
{
    if (local->round + local->released == comm->released)
        return;
    comm->released = local->round + local->released;
    comm->board->ops->release(comm->board, comm->released);
}

/* The other ranks are late: make progress of everything else meanwhile. */
static dt_result_t await_local(struct dt_comm *comm, struct dt_local *local,
                               struct dt_error *err)
{
    struct dt_world *world = comm->world;
    struct dt_tl *tl = comm->board->tl;
    struct dt_backoff backoff;
    dt_backoff_init(&backoff, 0, dt_world_sleeper(world));
    dt_world_lock(world);
    while (!local->done && world->failure == DT_SUCCESS) {
        bool others = dt_world_progress(world);
        bool moved = dt_local_progress(local);
        release_local(comm, local);
        if (moved)
            dt_backoff_restart(&backoff);
        else if (!local->done)
            dt_backoff_idle(&backoff, world, others);
        dt_world_let_in(world);
    }
    /* a rank that gave up may have overwritten what was read meanwhile */
    if (tl->ops->revoked(tl))
        dt_world_check(world);
    dt_result_t rc = dt_comm_failure(comm, err);
    dt_world_unlock(world);
    return rc;
}

static dt_result_t run_local(struct dt_comm *comm, const struct dt_shape *shape,
                             const void *sendbuf, void *recvbuf,
                             struct dt_error *err)
{
    struct dt_local local;
    dt_result_t rc = DT_SUCCESS;
    uint64_t rounds = dt_local_rounds(comm->board, shape);
    dt_local_begin(&local, comm->board, shape, sendbuf, recvbuf, comm->round,
                   dt_notice_seen());
    comm->sequence++;
    comm->round += rounds;
    const size_t spins = comm->world->spins;
    for (size_t idle = 0; !local.done && idle <= (spins ? spins : YIELDS);
         idle++) {
        if (dt_local_progress(&local))
            idle = 0;
        else if (!spins)
            sched_yield();
        release_local(comm, &local);
    }
    struct dt_tl *tl = comm->board->tl;
    if (!local.done || tl->ops->revoked(tl))
        rc = await_local(comm, &local, err);
    if (rc != DT_SUCCESS)
        dt_local_drop(&local);
    else if (local.notice)
        comm->leave = true;
    return rc;
}

dt_result_t dt_comm_run(struct dt_comm *comm, const struct dt_shape *shape,
                        const void *sendbuf, void *recvbuf,
                        struct dt_error *err)
{
    if (is_short(comm, shape))
        return run_local(comm, shape, sendbuf, recvbuf, err);
    struct dt_request *request;
    dt_result_t rc =
        dt_comm_start(comm, shape, sendbuf, recvbuf, &request, err);
    return rc == DT_SUCCESS ? dt_comm_wait(comm, request, err) : rc;
}
