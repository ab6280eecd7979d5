/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* wait.c - dt_wait and dt_test: completing a request. */
#include "base/api.h"
#include "coll/engine/engine.h"

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
    struct dt_world *world = request->comm->world;
    return request->on_device ? world->device->ops->wait(request, err)
                              : dt_comm_wait(request->comm, request, err);
}

static dt_result_t test(struct dt_request *request, struct dt_error *err)
{
    struct dt_world *world = request->comm->world;
    return request->on_device ? world->device->ops->test(request, err)
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
