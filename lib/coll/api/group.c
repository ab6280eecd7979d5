/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* group.c - what becomes of a valid call: it is run to its end, or started, or
 * started and kept for the end of this thread's group. */
#include "base/api.h"
#include "coll/api/call.h"
#include "coll/api/check.h"
#include "coll/engine/device.h"

/* The calls between dt_group_start and dt_group_end carry no handle by which
 * the group could be found, so it belongs to the thread. */
static _Thread_local struct {
    unsigned depth;
    struct dt_request *first, *last;
} group;

static const struct dt_device_ops *device_of(const struct dt_comm *comm)
{
    return comm->world->device->ops;
}

/* Whether the call is valid, and whether all ranks make the same. */
static dt_result_t check(struct dt_call *call, bool *empty,
                         struct dt_error *err)
{
    err->text[0] = '\0'; /* cheaper than to clear all of it */
    dt_result_t rc = dt_call_check(call, empty, err);
    if (rc == DT_SUCCESS && call->comm->world->device && !*empty)
        rc = device_of(call->comm)->place(call, err);
    if (rc == DT_SUCCESS && call->comm->world->check)
        rc = dt_check(call, err);
    if (rc == DT_SUCCESS && *empty)
        rc = dt_comm_failure(call->comm, err);
    return rc;
}

static dt_result_t begin(const struct dt_call *call, dt_request_t *request,
                         struct dt_error *err)
{
    if (call->on_device)
        return device_of(call->comm)->begin(call, request, err);
    return dt_comm_start(call->comm, &call->shape, call->sendbuf, call->recvbuf,
                         request, err);
}

dt_result_t dt_call_start(struct dt_call *call, dt_request_t *request)
{
    struct dt_error err;
    bool empty;
    if (!request && !call->stream) {
        dt_error_set(&err, DT_ERR_INVALID_ARG,
                     "the i-form of %s: request is NULL, which takes a stream",
                     dt_call_name(call->kind));
        return dt_api_return(DT_ERR_INVALID_ARG, &err);
    }
    dt_result_t rc = check(call, &empty, &err);
    dt_request_t started = NULL;
    if (rc == DT_SUCCESS && !empty)
        rc = begin(call, &started, &err);
    if (rc == DT_SUCCESS && started && call->on_device)
        rc = device_of(call->comm)->follow(started, &err);
    if (rc != DT_SUCCESS) {
        if (started)
            device_of(call->comm)->forget(started);
        return dt_api_return(rc, &err);
    }
    if (request)
        *request = started;
    else if (started)
        device_of(call->comm)->forget(started);
    return DT_SUCCESS;
}

static dt_result_t begin_in_group(const struct dt_call *call,
                                  struct dt_error *err)
{
    struct dt_request *request;
    dt_result_t rc = begin(call, &request, err);
    if (rc != DT_SUCCESS)
        return rc;
    request->grouped = NULL;
    if (group.last)
        group.last->grouped = request;
    else
        group.first = request;
    group.last = request;
    return DT_SUCCESS;
}

/* To its end, or as far as the host has to do with it. */
static dt_result_t run(const struct dt_call *call, struct dt_error *err)
{
    struct dt_request *request;
    if (!call->on_device)
        return dt_comm_run(call->comm, &call->shape, call->sendbuf,
                           call->recvbuf, err);
    dt_result_t rc = device_of(call->comm)->begin(call, &request, err);
    return rc == DT_SUCCESS ? device_of(call->comm)->end(request, err) : rc;
}

dt_result_t dt_call_run(struct dt_call *call)
{
    struct dt_error err;
    bool empty;
    dt_result_t rc = check(call, &empty, &err);
    if (rc == DT_SUCCESS && !empty)
        rc = group.depth ? begin_in_group(call, &err) : run(call, &err);
    return rc == DT_SUCCESS ? rc : dt_api_return(rc, &err);
}

dt_result_t dt_call_no_group(enum dt_call_kind kind, struct dt_error *err)
{
    if (!group.depth)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s: not between dt_group_start and dt_group_end: end "
                        "the group first",
                        dt_call_name(kind));
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
        dt_result_t ended = request->on_device
                                ? device_of(request->comm)->end(request, &err)
                                : dt_comm_wait(request->comm, request, &err);
        if (rc == DT_SUCCESS && ended != DT_SUCCESS) {
            rc = ended;
            first = err;
        }
        request = next;
    }
    return rc == DT_SUCCESS ? rc : dt_api_return(rc, &first);
}

typedef dt_result_t complete_fn(struct dt_request *, struct dt_error *);

static dt_result_t complete(complete_fn *fn, dt_request_t *request)
{
    struct dt_error err;
    if (!request || !*request)
        return DT_SUCCESS;
    err.text[0] = '\0';
    dt_result_t rc = fn(*request, &err);
    if (rc != DT_IN_PROGRESS)
        *request = NULL;
    return rc < 0 ? dt_api_return(rc, &err) : rc;
}

static dt_result_t wait(struct dt_request *request, struct dt_error *err)
{
    return request->on_device ? device_of(request->comm)->wait(request, err)
                              : dt_comm_wait(request->comm, request, err);
}

static dt_result_t test(struct dt_request *request, struct dt_error *err)
{
    return request->on_device ? device_of(request->comm)->test(request, err)
                              : dt_comm_test(request->comm, request, err);
}

dt_result_t dt_wait(dt_request_t *request)
{
    return complete(wait, request);
}

dt_result_t dt_test(dt_request_t *request)
{
    return complete(test, request);
}
