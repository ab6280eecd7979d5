/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt.c - the facade: this process's one job, its life and its place in
 * Slurm. The collectives are in coll/coll.c, checkpoints in ckpt/. */
#include "dt.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/api.h"
#include "base/deadline.h"
#include "base/env.h"
#include "base/notice.h"
#include "coll/comm.h"

/* A C API without a handle, as MPI's and NCCL's users expect, needs these. */
static struct dt_comm *world_comm;
static bool finalized;

dt_result_t dt_init(void)
{
    struct dt_error err = {""};
    if (world_comm || finalized)
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG,
                         "dt_init: called again%s: once per process",
                         finalized ? " after dt_finalize" : ""),
            &err);
    struct dt_world *world;
    dt_result_t rc = dt_world_open(&world, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    rc = dt_comm_open(world, &world_comm, &err);
    if (rc != DT_SUCCESS)
        dt_world_close(world);
    return dt_api_return(rc, &err);
}

dt_result_t dt_finalize(void)
{
    struct dt_error err = {""};
    if (!world_comm)
        return dt_api_return(dt_error_set(&err, DT_ERR_NOT_INITIALIZED,
                                          "dt_finalize: there was no dt_init"),
                             &err);
    struct dt_world *world = world_comm->world;
    dt_result_t rc = DT_SUCCESS;
    if (world->failure == DT_SUCCESS) { /* else nobody is waited for */
        while (rc == DT_SUCCESS && world_comm->active)
            rc = dt_api_return(
                dt_comm_wait(world_comm, world_comm->active, &err), &err);
        if (rc == DT_SUCCESS)
            rc = dt_barrier(world_comm, DT_STREAM_NONE);
        world->over = rc == DT_SUCCESS;
    }
    dt_notice_disarm();
    dt_world_close(world);
    dt_comm_close(world_comm);
    world_comm = NULL;
    finalized = true;
    return rc;
}

dt_comm_t dt_comm_world(void)
{
    return world_comm;
}

static const struct dt_world *world(void)
{
    return world_comm ? world_comm->world : NULL;
}

int dt_rank(void)
{
    return world() ? (int)world()->rank : DT_ERR_NOT_INITIALIZED;
}

int dt_size(void)
{
    return world() ? (int)world()->size : DT_ERR_NOT_INITIALIZED;
}

int dt_local_rank(void)
{
    return world() ? (int)world()->nodes[world()->node].index
                   : DT_ERR_NOT_INITIALIZED;
}

int dt_local_size(void)
{
    return world() ? (int)world()->nodes[world()->node].size
                   : DT_ERR_NOT_INITIALIZED;
}

int dt_node_rank(void)
{
    return world() ? (int)world()->node : DT_ERR_NOT_INITIALIZED;
}

int dt_num_nodes(void)
{
    return world() ? (int)world()->nnodes : DT_ERR_NOT_INITIALIZED;
}

bool dt_should_exit(void)
{
    dt_notice_arm();
    dt_deadline_step();
    return world_comm && world_comm->leave;
}

double dt_time_left(void)
{
    return dt_deadline_left();
}

int dt_restart_count(void)
{
    long count;
    if (dt_env_long("SLURM_RESTART_COUNT", 0, 0, 1L << 30, &count, NULL) !=
        DT_SUCCESS)
        return 0;
    return (int)count;
}

const char *dt_run_id(void)
{
    const char *given = getenv(DT_ENV_RUN_ID);
    const char *job = getenv("SLURM_JOB_ID");
    return given && *given ? given : job && *job ? job : "local";
}
