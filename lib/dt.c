/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt.c - the facade: this process's one job, its life and its place in
 * Slurm. The collectives are in coll/, checkpoints in ckpt/. */
#include "dt.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/api.h"
#include "base/deadline.h"
#include "base/env.h"
#include "base/notice.h"
#include "boot/boot.h"
#include "coll/api/api.h"
#include "coll/engine/engine.h"
#include "gpu/attach.h"

/* A C API without a handle, as MPI's users expect, needs these. */
static struct dt_boot *boot;
static pid_t joined; /* the process that has it, and not its children */
static struct dt_comm *world_comm;

static dt_result_t outside(const char *call)
{
    struct dt_error err;
    return dt_api_return(
        dt_error_set(&err, DT_ERR_NOT_INITIALIZED,
                     "%s: call it between dt_init and dt_finalize", call),
        &err);
}

/* Open the world and its communicator, as the environment wants them. */
static dt_result_t open_world(struct dt_comm **comm, struct dt_error *err)
{
    struct dt_world *world;
    long check;
    dt_result_t rc = dt_env_long(DT_ENV_CHECK, 0, 0, 1, &check, err);
    if (rc == DT_SUCCESS)
        rc = dt_world_open(boot, &world, err);
    if (rc != DT_SUCCESS)
        return rc;
    world->check = check;
    dt_gpu_attach(world);
    rc = dt_progress_start(world, err);
    if (rc == DT_SUCCESS)
        rc =
            dt_comm_open(world, NULL, world->size, DT_COMM_WORLD, 1, comm, err);
    if (rc != DT_SUCCESS) {
        dt_progress_stop(world);
        dt_world_close(world);
    }
    return rc;
}

/* A member of an elastic job that is lost before all are connected makes the
 * others meet once more. */
static dt_result_t open_members(struct dt_comm **comm, struct dt_error *err)
{
    dt_result_t rc;
    uint64_t epoch;
    do {
        epoch = boot->epoch;
        rc = open_world(comm, err);
    } while (rc != DT_SUCCESS && boot->epoch > epoch &&
             boot->ops->check(boot, DT_BOOT_EVENT_WAIT, NULL) != DT_SUCCESS);
    return rc;
}

static void leave_launcher(void)
{
    boot->ops->close(boot);
    boot = NULL;
}

/* The connection to the launcher outlives dt_finalize, as PMIx takes a rank
 * that has left for one that does not come back. One that ends without
 * dt_finalize does not leave: the others are to be told. */
__attribute__((destructor)) static void leave_at_exit(void)
{
    if (boot && !world_comm && getpid() == joined)
        leave_launcher();
}

dt_result_t dt_init(void)
{
    struct dt_error err = {""};
    if (world_comm)
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG,
                         "dt_init: called again: dt_finalize first"),
            &err);
    struct dt_comm *comm;
    if (boot && joined != getpid())
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG,
                         "dt_init: the process that forked this one is the "
                         "rank: start another program, or fork before dt_init"),
            &err);
    dt_result_t rc = boot ? DT_SUCCESS : dt_boot_open(&boot, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    joined = getpid();
    rc = open_members(&comm, &err);
    if (rc == DT_SUCCESS)
        world_comm = comm;
    else
        leave_launcher();
    return dt_api_return(rc, &err);
}

/* Complete what is open on all communicators, then meet for the last time. */
static dt_result_t part(struct dt_world *world, struct dt_error *err)
{
    const struct dt_call call = {.kind = DT_CALL_FINALIZE, .comm = world_comm};
    dt_result_t rc = DT_SUCCESS;
    /* first, as they have communicators of their own */
    for (size_t i = 0; rc == DT_SUCCESS && i < DT_COMMS; i++)
        if (world->comms[i])
            rc = dt_device_leave(world, world->comms[i], err);
    for (size_t i = 0; i < DT_COMMS; i++) {
        struct dt_comm *comm = world->comms[i];
        while (rc == DT_SUCCESS && comm && comm->active)
            rc = dt_comm_wait(comm, comm->active, err);
    }
    if (rc == DT_SUCCESS && world->check)
        rc = dt_check(&call, err);
    if (rc == DT_SUCCESS)
        rc = dt_comm_leave(world_comm, err);
    return rc;
}

/* May the world be left now? */
static dt_result_t check_leave(const char *call, struct dt_error *err)
{
    if (!world_comm)
        return dt_error_set(err, DT_ERR_NOT_INITIALIZED,
                            "%s: there was no dt_init, or dt_finalize has been "
                            "called",
                            call);
    dt_result_t rc = dt_group_refuse(call, err);
    if (rc == DT_SUCCESS && world_comm->world->grads > 0)
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "%s: the gradient engine is open: call "
                          "dt_grad_close first",
                          call);
    return rc;
}

dt_result_t dt_finalize(void)
{
    struct dt_error err = {""};
    bool over = false;
    dt_result_t rc = check_leave("dt_finalize", &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    struct dt_world *world = world_comm->world;
    const long timeout = world->timeout;
    dt_progress_stop(world);
    if (world->failure == DT_SUCCESS) { /* else nobody is waited for */
        rc = part(world, &err);
        over = rc == DT_SUCCESS;
    }
    dt_notice_disarm();
    dt_memory_fini(world);
    dt_world_close(world);
    if (over && boot->ops->finish)
        boot->ops->finish(boot, timeout);
    world_comm = NULL;
    return dt_api_return(rc, &err);
}

/* ---- after a loss ---- */

/* The world that is left, with all that hangs on it but for the memory. */
static dt_result_t leave_world(struct dt_memory **kept, struct dt_error *err)
{
    struct dt_world *world = world_comm->world;
    struct dt_error why;
    dt_error_set(&why, DT_ERR_PROC_FAILED,
                 "this rank has left the world by dt_reinit");
    dt_progress_stop(world);
    dt_world_lock(world);
    dt_world_fail(world, DT_ERR_PROC_FAILED, &why); /* so that all come */
    dt_world_unlock(world);
    dt_result_t rc = dt_memory_keep(world, kept, err);
    if (rc != DT_SUCCESS)
        dt_memory_fini(world);
    dt_world_close(world);
    world_comm = NULL;
    return rc;
}

dt_result_t dt_reinit(void)
{
    struct dt_error err = {""};
    struct dt_memory *kept;
    struct dt_comm *comm;
    dt_result_t rc = check_leave("dt_reinit", &err);
    if (rc == DT_SUCCESS && !boot->elastic)
        rc = dt_error_set(&err, DT_ERR_UNSUPPORTED,
                          "dt_reinit: this job is not elastic: start it with "
                          "dt-run --elastic or srun --dt-elastic");
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    rc = leave_world(&kept, &err);
    if (rc == DT_SUCCESS)
        rc = open_members(&comm, &err);
    if (rc == DT_SUCCESS) {
        world_comm = comm;
        dt_memory_take(comm->world, kept);
    } else { /* what was kept stays, as the program may still read it */
        leave_launcher();
    }
    return dt_api_return(rc, &err);
}

dt_result_t dt_comm_get_failed(dt_comm_t comm, int *ranks, int *count)
{
    struct dt_error err = {""};
    int found = 0;
    if (!comm)
        return outside("dt_comm_get_failed");
    if (!count || *count < 0 || (*count && !ranks))
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG,
                         "dt_comm_get_failed: expected the room in ranks in "
                         "*count, and ranks unless it is 0"),
            &err);
    for (size_t i = 0; boot->ops->ended && i < comm->size; i++)
        if (boot->ops->ended(boot, comm->members[i])) {
            if (found < *count)
                ranks[found] = (int)i;
            found++;
        }
    *count = found;
    return DT_SUCCESS;
}

dt_result_t dt_comm_revoke(dt_comm_t comm)
{
    struct dt_error why;
    if (!comm)
        return outside("dt_comm_revoke");
    dt_error_set(&why, DT_ERR_PROC_FAILED, "rank %zu has revoked it",
                 comm->world->rank);
    dt_world_lock(comm->world);
    dt_world_fail(comm->world, DT_ERR_PROC_FAILED, &why);
    dt_world_unlock(comm->world);
    return DT_SUCCESS;
}

dt_comm_t dt_comm_world(void)
{
    return world_comm;
}

static struct dt_world *world(void)
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
    return world() ? (int)dt_layout_node(&world()->layout)->index
                   : DT_ERR_NOT_INITIALIZED;
}

int dt_local_size(void)
{
    return world() ? (int)dt_layout_node(&world()->layout)->size
                   : DT_ERR_NOT_INITIALIZED;
}

int dt_node_rank(void)
{
    return world() ? (int)world()->layout.node : DT_ERR_NOT_INITIALIZED;
}

int dt_num_nodes(void)
{
    return world() ? (int)world()->layout.nnodes : DT_ERR_NOT_INITIALIZED;
}

/* ---- memory ---- */

dt_result_t dt_mem_alloc(size_t size, void **ptr)
{
    struct dt_error err = {""};
    if (!world())
        return outside("dt_mem_alloc");
    return dt_api_return(dt_memory_alloc(world(), size, ptr, &err), &err);
}

dt_result_t dt_mem_free(void *ptr)
{
    struct dt_error err = {""};
    if (!ptr)
        return DT_SUCCESS;
    if (!world())
        return outside("dt_mem_free");
    return dt_api_return(dt_memory_free(world(), ptr, &err), &err);
}

dt_result_t dt_mem_register(void *ptr, size_t size)
{
    struct dt_error err = {""};
    if (!world())
        return outside("dt_mem_register");
    return dt_api_return(dt_memory_register(world(), ptr, size, &err), &err);
}

dt_result_t dt_mem_deregister(void *ptr)
{
    struct dt_error err = {""};
    if (!world())
        return outside("dt_mem_deregister");
    return dt_api_return(dt_memory_deregister(world(), ptr, &err), &err);
}

/* ---- restart ---- */

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
