/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* communicator.c - the public functions of communicators: split, create,
 * destroy, rank and size. */
#include <stdlib.h>

#include "base/api.h"
#include "coll/api/call.h"
#include "coll/api/check.h"
#include "coll/api/group.h"
#include "coll/engine/engine.h"

/* May communicators be made and destroyed now? */
static dt_result_t check_state(enum dt_call_kind kind, dt_comm_t comm,
                               struct dt_error *err)
{
    if (!comm)
        return dt_error_set(err, DT_ERR_NOT_INITIALIZED,
                            "%s: no communicator: call it between dt_init and "
                            "dt_finalize",
                            dt_call_name(kind));
    return dt_group_refuse(dt_call_name(kind), err);
}

/* What splitting and destroying have in common with collectives. */
static dt_result_t check(enum dt_call_kind kind, dt_comm_t comm,
                         struct dt_error *err)
{
    const struct dt_call call = {.kind = kind, .comm = comm};
    dt_result_t rc = check_state(kind, comm, err);
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

/* ---- create ---- */

/* The ranks that were given, as ranks of the world: as given, and rising. */
struct members {
    size_t *given, *rising;
    size_t n;
    int key; /* the index of this rank in given; -1: it is none of them */
};

static int by_number(const void *a, const void *b)
{
    const size_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static dt_result_t check_members(const struct dt_comm *comm, const int *ranks,
                                 int n, struct dt_error *err)
{
    if (!ranks || n < 1 || (size_t)n > comm->size)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_comm_create: %d ranks%s: expected 1 to %zu, as "
                            "parent has",
                            n, ranks ? "" : " at NULL", comm->size);
    for (int i = 0; i < n; i++)
        if (ranks[i] < 0 || (size_t)ranks[i] >= comm->size)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "dt_comm_create: ranks[%d] is %d: expected a "
                                "rank of parent, 0 to %zu",
                                i, ranks[i], comm->size - 1);
    return DT_SUCCESS;
}

static dt_result_t find_members(const struct dt_comm *comm, const int *ranks,
                                int n, struct members *m, struct dt_error *err)
{
    m->n = (size_t)n;
    m->key = -1;
    m->given = calloc(m->n, sizeof(*m->given));
    m->rising = calloc(m->n, sizeof(*m->rising));
    if (!m->given || !m->rising)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "dt_comm_create: no memory for a communicator");
    for (int i = 0; i < n; i++) {
        m->given[i] = m->rising[i] = comm->members[ranks[i]];
        if ((size_t)ranks[i] == comm->rank)
            m->key = i;
    }
    qsort(m->rising, m->n, sizeof(*m->rising), by_number);
    for (size_t i = 1; i < m->n; i++)
        if (m->rising[i] == m->rising[i - 1])
            return dt_error_set(
                err, DT_ERR_INVALID_ARG,
                "dt_comm_create: rank %zu of the world is given "
                "twice",
                m->rising[i]);
    return DT_SUCCESS;
}

static dt_result_t create(struct dt_comm *comm, const struct members *m,
                          struct dt_comm **made, struct dt_error *err)
{
    struct dt_comm *plain;
    dt_result_t rc =
        dt_comm_open_plain(comm->world, m->rising, m->n, &plain, err);
    if (rc != DT_SUCCESS)
        return rc;
    const struct dt_call call = {
        .kind = DT_CALL_CREATE, .comm = plain, .shape.sendcounts = m->given};
    if (comm->world->check)
        rc = dt_check(&call, err);
    if (rc == DT_SUCCESS)
        rc = dt_create(plain, m->key, made, err);
    dt_comm_close_plain(plain);
    return rc;
}

dt_result_t dt_comm_create(dt_comm_t parent, const int *ranks, int n,
                           dt_comm_t *newcomm)
{
    struct dt_error err = {""};
    struct dt_comm *made = NULL;
    struct members members = {NULL, NULL, 0, -1};
    dt_result_t rc = DT_SUCCESS;
    if (!newcomm)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "dt_comm_create: newcomm is NULL");
    if (rc == DT_SUCCESS)
        rc = check_state(DT_CALL_CREATE, parent, &err);
    if (rc == DT_SUCCESS)
        rc = check_members(parent, ranks, n, &err);
    if (rc == DT_SUCCESS)
        rc = find_members(parent, ranks, n, &members, &err);
    if (rc == DT_SUCCESS && members.key >= 0)
        rc = create(parent, &members, &made, &err);
    free(members.given);
    free(members.rising);
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
