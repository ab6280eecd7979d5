/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* request.c - running a schedule.
 *
 *   waiting --(last dependency)--> ready --> done
 *                                  ready --> in flight --> done, a message
 *
 * Tasks become ready in the order in which their dependencies end, and start
 * in that order, so early chunks are on their way before late ones begin. */
#include <stdlib.h>
#include <string.h>

#include "base/notice.h"
#include "coll/comm.h"
#include "exec/exec.h"

static dt_result_t build(struct dt_request *request, struct dt_error *err)
{
    struct dt_sched *sched = &request->sched;
    dt_sched_init(sched, request->comm->size);
    switch (request->shape.coll) {
    case DT_COLL_ALLREDUCE:
        dt_allreduce_build(sched, request->comm, &request->shape);
        break;
    case DT_COLL_BCAST:
        dt_bcast_build(sched, request->comm, &request->shape);
        break;
    case DT_COLL_ALLGATHER:
        dt_allgather_build(sched, request->comm, &request->shape);
        break;
    }
    return dt_sched_finish(sched, err);
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
    if (build(request, err) != DT_SUCCESS)
        goto destroy;
    size_t n = request->sched.ntasks + 1; /* never ask for zero bytes */
    request->pending = calloc(n, sizeof(*request->pending));
    request->message = calloc(n, sizeof(*request->message));
    request->ready = calloc(n, sizeof(*request->ready));
    request->flight = calloc(n, sizeof(*request->flight));
    request->space[DT_SPACE_SCRATCH] = malloc(request->sched.scratch + 1);
    if (!request->pending || !request->message || !request->ready ||
        !request->flight || !request->space[DT_SPACE_SCRATCH])
        goto destroy;
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
    dt_sched_fini(&request->sched);
    free(request->pending);
    free(request->message);
    free(request->ready);
    free(request->flight);
    free(request->space[DT_SPACE_SCRATCH]);
    free(request);
}

void dt_request_begin(struct dt_request *request, const void *sendbuf,
                      void *recvbuf)
{
    const struct dt_sched *sched = &request->sched;
    request->space[DT_SPACE_SEND] = (char *)sendbuf; /* only read from */
    request->space[DT_SPACE_RECV] = recvbuf;
    request->note = dt_notice_seen();
    request->status = sched->ntasks ? DT_IN_PROGRESS : DT_SUCCESS;
    request->left = sched->ntasks;
    request->ready_head = request->ready_tail = request->nflight = 0;
    for (size_t i = 0; i < sched->ntasks; i++) {
        request->pending[i] = sched->tasks[i].ndeps;
        if (!request->pending[i])
            request->ready[request->ready_tail++] = i;
    }
}

static void done(struct dt_request *request, size_t task)
{
    const struct dt_sched *sched = &request->sched;
    request->comm->steps++;
    size_t edge = sched->tasks[task].edges;
    for (; edge != DT_TASK_NONE; edge = sched->edges[edge].next) {
        size_t next = sched->edges[edge].task;
        if (--request->pending[next] == 0)
            request->ready[request->ready_tail++] = next;
    }
    if (--request->left == 0)
        request->status = DT_SUCCESS;
}

static void *at(const struct dt_request *request, struct dt_ref ref)
{
    return request->space[ref.space] + ref.offset;
}

static void post(struct dt_request *request, size_t number)
{
    const struct dt_task *task = &request->sched.tasks[number];
    struct dt_tl *tl = dt_world_route(request->comm->world, task->peer);
    struct dt_tl_req *message = &request->message[number];
    uint64_t tag = request->tag | task->slot;
    memset(message, 0, sizeof(*message));
    if (task->kind == DT_TASK_SEND)
        tl->ops->isend(tl, task->peer, request->note ? tag | DT_TAG_NOTE : tag,
                       at(request, task->a), task->len, message);
    else
        tl->ops->irecv(tl, task->peer, tag, at(request, task->dst), task->len,
                       message);
    request->flight[request->nflight++] = number;
}

static void start(struct dt_request *request, size_t number)
{
    const struct dt_task *task = &request->sched.tasks[number];
    const struct dt_shape *shape = &request->shape;
    size_t elements = task->len / dt_dtype_size(shape->dtype);
    switch (task->kind) {
    case DT_TASK_SEND:
    case DT_TASK_RECV:
        post(request, number);
        return;
    case DT_TASK_REDUCE:
        dt_exec_reduce(at(request, task->dst), at(request, task->a),
                       at(request, task->b), elements, shape->dtype, shape->op);
        break;
    case DT_TASK_COPY:
        memcpy(at(request, task->dst), at(request, task->a), task->len);
        break;
    case DT_TASK_DIVIDE:
        dt_exec_divide(at(request, task->dst), elements, shape->dtype,
                       request->comm->size);
        break;
    case DT_TASK_JOIN:
        break;
    }
    done(request, number);
}

/* Take home the messages that have ended; true if any had. */
static bool collect(struct dt_request *request)
{
    bool moved = false;
    for (size_t i = 0; i < request->nflight;) {
        size_t number = request->flight[i];
        const struct dt_tl_req *message = &request->message[number];
        if (message->status == DT_IN_PROGRESS) {
            i++;
            continue;
        }
        moved = true;
        request->flight[i] = request->flight[--request->nflight];
        if (message->status != DT_SUCCESS) {
            request->status = message->status;
            return true;
        }
        if (!message->send && message->tag & DT_TAG_NOTE)
            request->note = true;
        done(request, number);
    }
    return moved;
}

bool dt_request_progress(struct dt_request *request)
{
    bool moved = false;
    while (request->status == DT_IN_PROGRESS) {
        bool again = collect(request);
        while (request->status == DT_IN_PROGRESS &&
               request->ready_head < request->ready_tail) {
            start(request, request->ready[request->ready_head++]);
            again = true;
        }
        if (!again)
            break;
        moved = true;
    }
    return moved;
}
