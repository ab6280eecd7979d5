/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* leave.c - barriers of libdt's own, and the last one of a communicator. A rank
 * that has completed a barrier may close its board, which ranks that are still
 * in the barrier read. So the last barrier also waits until the other ranks of
 * the node have released all rounds. */
#include "base/env.h"
#include "coll/engine/backoff.h"
#include "coll/engine/comm.h"

static void give_up(struct dt_world *world)
{
    struct dt_error late;
    dt_error_set(&late, DT_ERR_TIMED_OUT,
                 "a rank of this node did not leave the last barrier within "
                 "%ld s (" DT_ENV_TIMEOUT "): it is stopped",
                 world->timeout);
    dt_world_fail(world, DT_ERR_TIMED_OUT, &late);
}

/* Have all ranks of the node released all rounds? */
static bool settled(const struct dt_comm *comm)
{
    struct dt_board *board = comm->board;
    return !board || board->ops->released(board, comm->round);
}

/* The peers are checked before the board is read for the last time: a rank that
 * has ended by then had released its rounds. The lock is held. */
static dt_result_t settle(struct dt_comm *comm, struct dt_error *err)
{
    struct dt_world *world = comm->world;
    struct dt_backoff backoff;
    dt_backoff_init(&backoff, world->spins, dt_world_sleeper(world));
    while (!settled(comm)) {
        if (world->failure != DT_SUCCESS)
            return dt_comm_failure(comm, err);
        bool look;
        if (dt_world_progress(world)) {
            look = dt_backoff_others(&backoff);
            dt_world_let_in(world);
        } else {
            dt_world_unlock(world);
            look = dt_backoff_wait(&backoff);
            dt_world_lock(world);
        }
        dt_world_listen(world, 0);
        if (!look || settled(comm))
            continue;
        dt_world_check(world);
        if (dt_backoff_seconds(&backoff) >= world->timeout)
            give_up(world);
    }
    return DT_SUCCESS;
}

dt_result_t dt_comm_barrier(struct dt_comm *comm, struct dt_error *err)
{
    const struct dt_shape shape = {.coll = DT_COLL_ALLREDUCE,
                                   .dtype = DT_DTYPE_I32,
                                   .op = DT_OP_SUM,
                                   .count = 1,
                                   .prescale = 1,
                                   .postscale = 1};
    return dt_comm_run(comm, &shape, &comm->token[0], &comm->token[1], err);
}

dt_result_t dt_comm_leave(struct dt_comm *comm, struct dt_error *err)
{
    dt_result_t rc = dt_comm_barrier(comm, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_world_lock(comm->world);
    rc = settle(comm, err);
    dt_world_unlock(comm->world);
    return rc;
}
