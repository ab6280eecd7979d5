/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* request_create.c - the schedules that a request runs, and its memory. */
#include <stdlib.h>

#include "coll/algorithm/algorithm.h"
#include "coll/engine/comm.h"
#include "coll/algorithm/cut.h"

static bool is_p2p(const struct dt_shape *shape)
{
    return shape->coll == DT_COLL_SEND || shape->coll == DT_COLL_RECV;
}

static void build_message(struct dt_request *request)
{
    const struct dt_shape *shape = &request->shape;
    struct dt_sched *sched = &request->plans[0];
    size_t len = shape->count * dt_dtype_size(shape->dtype);
    size_t task =
        shape->coll == DT_COLL_SEND
            ? dt_sched_send(sched, shape->root, dt_ref(DT_SPACE_SEND, 0), len)
            : dt_sched_recv(sched, shape->root, dt_ref(DT_SPACE_RECV, 0), len);
    if (task != DT_TASK_NONE)
        sched->tasks[task].slot = DT_TAG_P2P;
}

/* The shape of a slice: blocks are as far from each other as in the whole. */
static struct dt_shape slice_of(const struct dt_shape *whole, size_t count,
                                const size_t *displs)
{
    struct dt_shape shape = *whole;
    shape.count = count;
    if (shape.coll == DT_COLL_ALLGATHER || shape.coll == DT_COLL_GATHER ||
        shape.coll == DT_COLL_ALLTOALL)
        shape.recvdispls = displs;
    if (shape.coll == DT_COLL_REDUCE_SCATTER || shape.coll == DT_COLL_SCATTER ||
        shape.coll == DT_COLL_ALLTOALL)
        shape.senddispls = displs;
    return shape;
}

static void build_slices(struct dt_request *request, size_t slice)
{
    const struct dt_comm *comm = request->comm;
    const size_t count = request->shape.count;
    size_t *displs = calloc(comm->size, sizeof(*displs));
    if (!displs) {
        request->plans[0].failed = true;
        return;
    }
    for (size_t i = 0; i < comm->size; i++)
        displs[i] = i * count;
    size_t counts[] = {slice, (count - 1) % slice + 1};
    request->slice = slice;
    for (size_t i = 0; i < 2; i++) {
        struct dt_shape shape = slice_of(&request->shape, counts[i], displs);
        dt_algorithm_build(&(struct dt_plan){.sched = &request->plans[i],
                                             .layout = &comm->layout,
                                             .shape = &shape,
                                             .tune = &comm->world->tune});
    }
    free(displs);
}

static dt_result_t build(struct dt_request *request, struct dt_error *err)
{
    const struct dt_comm *comm = request->comm;
    const struct dt_plan plan = {.sched = &request->plans[0],
                                 .layout = &comm->layout,
                                 .shape = &request->shape,
                                 .tune = &comm->world->tune};
    dt_sched_init(&request->plans[0], comm->size);
    dt_sched_init(&request->plans[1], comm->size);
    request->slice = dt_at_least(request->shape.count, 1);
    if (is_p2p(&request->shape)) {
        build_message(request);
    } else {
        if (dt_cut_slice(&plan) < request->shape.count)
            build_slices(request, dt_cut_slice(&plan));
        else
            dt_algorithm_build(&plan);
    }
    dt_result_t rc = dt_sched_finish(&request->plans[0], err);
    return rc == DT_SUCCESS ? dt_sched_finish(&request->plans[1], err) : rc;
}

static bool alloc(struct dt_request *request)
{
    const struct dt_sched *one = &request->plans[0], *two = &request->plans[1];
    size_t n = dt_at_least(one->ntasks, two->ntasks) + 1; /* never zero bytes */
    size_t messages = dt_at_least(one->nmessages, two->nmessages) + 1;
    request->pending = calloc(n, sizeof(*request->pending));
    request->ready = calloc(n, sizeof(*request->ready));
    request->watch = calloc(n, sizeof(*request->watch));
    request->message = calloc(messages, sizeof(*request->message));
    request->flight = calloc(messages, sizeof(*request->flight));
    request->uses = calloc(dt_at_least(one->rounds, two->rounds) + 1,
                           sizeof(*request->uses));
    request->inputs = calloc(request->comm->layout.piece_max
                                 ? dt_layout_node(&request->comm->layout)->size
                                 : 1,
                             sizeof(*request->inputs));
    request->space[DT_SPACE_SCRATCH] =
        malloc(dt_at_least(one->scratch, two->scratch) + 1);
    return request->pending && request->ready && request->watch &&
           request->message && request->flight && request->uses &&
           request->inputs && request->space[DT_SPACE_SCRATCH];
}

/* Before the last one. */
static size_t full_slices(const struct dt_request *request)
{
    size_t count = request->shape.count;
    return count ? (count - 1) / request->slice : 0;
}

dt_result_t dt_request_create(struct dt_comm *comm,
                              const struct dt_shape *shape,
                              struct dt_request **out, struct dt_error *err)
{
    struct dt_request *request = calloc(1, sizeof(*request));
    if (!request)
        goto no_memory;
    request->comm = comm;
    request->shape = *shape;
    request->is_local = comm->board && comm->layout.nnodes == 1 &&
                        dt_local_serves(comm->board, shape);
    if (request->is_local) {
        request->rounds = dt_local_rounds(comm->board, shape);
        *out = request;
        return DT_SUCCESS;
    }
    if (build(request, err) != DT_SUCCESS || !alloc(request))
        goto destroy;
    request->rounds =
        dt_at_least(full_slices(request), 1) * request->plans[0].rounds +
        request->plans[1].rounds;
    *out = request;
    return DT_SUCCESS;

destroy:
    dt_request_destroy(request);
no_memory:
    return dt_error_set(err, DT_ERR_NO_MEMORY,
                        "no memory for a collective of %zu elements",
                        shape->count);
}

void dt_request_destroy(struct dt_request *request)
{
    if (!request)
        return;
    dt_sched_fini(&request->plans[0]);
    dt_sched_fini(&request->plans[1]);
    free(request->pending);
    free(request->ready);
    free(request->watch);
    free(request->message);
    free(request->flight);
    free(request->uses);
    free(request->inputs);
    free(request->space[DT_SPACE_SCRATCH]);
    free(request);
}
