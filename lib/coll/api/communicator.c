/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* communicator.c - the public functions of communicators: split, destroy, rank
 * and size. */
#include "base/api.h"
#include "coll/api/call.h"
#include "coll/api/check.h"
#include "coll/api/group.h"
#include "coll/engine/engine.h"

/* What splitting and destroying have in common with collectives. */
static dt_result_t check(enum dt_call_kind kind, dt_comm_t comm,
                         struct dt_error *err)
{
    const struct dt_call call = {.kind = kind, .comm = comm};
    if (!comm)
        return dt_error_set(err, DT_ERR_NOT_INITIALIZED,
                            "%s: no communicator: call it between dt_init and "
                            "dt_finalize",
                            dt_call_name(kind));
    dt_result_t rc = dt_group_refuse(dt_call_name(kind), err);
    if (rc == DT_SUCCESS && comm->world->check)
        rc = dt_check(&call, err);
    return rc;
}

dt_result_t dt_comm_split(dt_comm_t comm, int color, int key,
                          dt_comm_t *newcomm)
{
    struct dt_error err = {""};
    struct dt_comm *made = NULL;
    dt_result_t rc = DT_SUCCESS;
    if (color < 0 && color != DT_COLOR_NONE)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "dt_comm_split: color %d: expected 0 or more, or "
                          "DT_COLOR_NONE",
                          color);
    else if (!newcomm)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "dt_comm_split: newcomm is NULL");
    if (rc == DT_SUCCESS)
        rc = check(DT_CALL_SPLIT, comm, &err);
    if (rc == DT_SUCCESS)
        rc = dt_split(comm, color, key, &made, &err);
    if (rc == DT_SUCCESS)
        *newcomm = made;
    return dt_api_return(rc, &err);
}

dt_result_t dt_comm_destroy(dt_comm_t comm)
{
    struct dt_error err = {""}, late;
    if (!comm)
        return DT_SUCCESS;
    if (comm->id == DT_COMM_WORLD)
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG,
                         "dt_comm_destroy: dt_finalize destroys the world's "
                         "communicator"),
            &err);
    dt_result_t rc = check(DT_CALL_DESTROY, comm, &err);
    if (rc != DT_SUCCESS && dt_comm_failure(comm, NULL) == DT_SUCCESS)
        return dt_api_return(rc, &err); /* comm can still be used */
    while (comm->active) {
        dt_result_t ended = dt_comm_wait(comm, comm->active, &late);
        if (rc == DT_SUCCESS && ended != DT_SUCCESS) {
            rc = ended;
            err = late;
        }
    }
    if (rc == DT_SUCCESS)
        rc = dt_device_leave(comm->world, comm, &err);
    if (rc == DT_SUCCESS)
        rc = dt_comm_leave(comm, &err);
    if (comm->world->device)
        comm->world->device->ops->close_comm(comm);
    dt_comm_close(comm);
    return dt_api_return(rc, &err);
}

int dt_comm_rank(dt_comm_t comm)
{
    return comm ? (int)comm->rank : DT_ERR_NOT_INITIALIZED;
}

int dt_comm_size(dt_comm_t comm)
{
    return comm ? (int)comm->size : DT_ERR_NOT_INITIALIZED;
}
