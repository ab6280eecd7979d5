/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* group.c - groups of calls: each is started, and the end of the group waits
 * for all of them. */
#include "coll/api/group.h"

#include "base/api.h"
#include "coll/engine/engine.h"

/* The calls between dt_group_start and dt_group_end carry no handle by which
 * the group could be found, so it belongs to the thread. */
static _Thread_local struct {
    unsigned depth;
    struct dt_request *first, *last;
} group;

bool dt_group_is_open(void)
{
    return group.depth;
}

void dt_group_add(struct dt_request *request)
{
    request->grouped = NULL;
    if (group.last)
        group.last->grouped = request;
    else
        group.first = request;
    group.last = request;
}

dt_result_t dt_group_refuse(const char *call, struct dt_error *err)
{
    if (!group.depth)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s: not between dt_group_start and dt_group_end: end "
                        "the group first",
                        call);
}

dt_result_t dt_group_start(void)
{
    group.depth++;
    return DT_SUCCESS;
}

dt_result_t dt_group_end(void)
{
    struct dt_error err, first;
    dt_result_t rc = DT_SUCCESS;
    if (!group.depth) {
        dt_error_set(&err, DT_ERR_INVALID_ARG,
                     "dt_group_end: there was no dt_group_start");
        return dt_api_return(DT_ERR_INVALID_ARG, &err);
    }
    if (--group.depth)
        return DT_SUCCESS;
    struct dt_request *request = group.first;
    group.first = group.last = NULL;
    while (request) {
        struct dt_request *next = request->grouped;
        err.text[0] = '\0';
        struct dt_world *world = request->comm->world;
        dt_result_t ended = request->on_device
                                ? world->device->ops->end(request, &err)
                                : dt_comm_wait(request->comm, request, &err);
        if (rc == DT_SUCCESS && ended != DT_SUCCESS) {
            rc = ended;
            first = err;
        }
        request = next;
    }
    return rc == DT_SUCCESS ? rc : dt_api_return(rc, &first);
}
