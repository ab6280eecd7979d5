/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* run.c - a blocking collective, and the shortest way for those that have one.
 *
 * An allreduce inside the node, with nothing else under way on comm, touches
 * nothing but the board, so it needs no lock, no request and no plan. */
#include <sched.h>

#include "base/notice.h"
#include "coll/engine/comm.h"
#include "coll/engine/idle.h"

/* Where the cores have to be shared, so many looks at the board before all else
 * is looked at. */
#define YIELDS 100

static bool is_short(const struct dt_comm *comm, const struct dt_shape *shape)
{
    return comm->board && comm->layout.nnodes == 1 && !comm->active &&
           comm->world->failure == DT_SUCCESS &&
           dt_local_serves(comm->board, shape);
}

static void pass_local(struct dt_comm *comm, const struct dt_local *local)
{
    if (local->round + local->passed == comm->through)
        return;
    comm->through = local->round + local->passed;
    comm->board->ops->release(comm->board, comm->through);
}

/* The others are late: see to everything else meanwhile. */
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
        pass_local(comm, local);
        if (moved)
            dt_backoff_restart(&backoff);
        else if (!local->done)
            dt_idle(&backoff, world, others);
        dt_world_let_in(world);
    }
    /* what was read may have been given up meanwhile */
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
        pass_local(comm, &local);
    }
    struct dt_tl *tl = comm->board->tl;
    if (!local.done || tl->ops->revoked(tl))
        rc = await_local(comm, &local, err);
    if (rc != DT_SUCCESS)
        dt_local_drop(&local);
    else if (local.note)
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
