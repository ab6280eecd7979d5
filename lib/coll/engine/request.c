/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* request.c - running a schedule.
 *
 *   waiting --(last dependency)--> ready --> done
 *                                  ready --> in flight --> done, a message
 *                                  ready --> watched --> done, on the board
 *
 * Tasks become ready in the order in which their dependencies end, and start
 * in that order, so early chunks are on their way before late ones begin. */
#include <string.h>

#include "base/notice.h"
#include "coll/engine/comm.h"
#include "exec/exec.h"

static bool is_on_board(const struct dt_task *task)
{
    return task->kind == DT_TASK_POST || task->kind == DT_TASK_FOLD ||
           task->kind == DT_TASK_FETCH;
}

/* What this rank does in each round. Its own post counts, lest the place that
 * it takes be given to a later round before. */
static void count_uses(struct dt_request *request)
{
    const struct dt_sched *sched = request->sched;
    memset(request->uses, 0, sched->rounds * sizeof(*request->uses));
    for (size_t i = 0; sched->rounds && i < sched->ntasks; i++)
        if (is_on_board(&sched->tasks[i]))
            request->uses[sched->tasks[i].round]++;
}

/* Is this rank through with more rounds? */
static void pass(struct dt_request *request)
{
    while (request->passed < request->base + request->sched->rounds &&
           !request->uses[request->passed - request->base])
        request->passed++;
}

/* The slice from request->first on. */
static void begin_slice(struct dt_request *request)
{
    bool last = request->shape.count - request->first <= request->slice;
    const struct dt_sched *sched = &request->plans[last && request->first > 0];
    request->sched = sched;
    request->left = sched->ntasks;
    request->ready_head = request->ready_tail = 0;
    request->nflight = request->nwatch = 0;
    count_uses(request);
    pass(request);
    for (size_t i = 0; i < sched->ntasks; i++) {
        request->pending[i] = sched->tasks[i].ndeps;
        if (!request->pending[i])
            request->ready[request->ready_tail++] = i;
    }
}

/* This slice is done; false: it was the last. The next one may use the tags
 * again, as messages of one peer and tag keep their order. */
static bool next_slice(struct dt_request *request)
{
    size_t bytes = request->slice * dt_dtype_size(request->shape.dtype);
    if (request->shape.count - request->first <= request->slice)
        return false;
    request->first += request->slice;
    request->base += request->sched->rounds;
    for (int i = DT_SPACE_SEND; i <= DT_SPACE_RECV; i++)
        if (request->space[i]) /* else this rank needs none */
            request->space[i] += bytes;
    begin_slice(request);
    return true;
}

void dt_request_begin(struct dt_request *request, const void *sendbuf,
                      void *recvbuf)
{
    request->note = dt_notice_seen();
    request->passed = 0;
    if (request->is_local) {
        request->status = DT_IN_PROGRESS;
        dt_local_begin(&request->local, request->comm->board, &request->shape,
                       sendbuf, recvbuf, request->round, request->note);
        return;
    }
    request->space[DT_SPACE_SEND] = (char *)sendbuf; /* only read from */
    request->space[DT_SPACE_RECV] = recvbuf;
    request->in_place = false;
    request->first = request->base = 0;
    begin_slice(request);
    request->status = request->left || request->slice < request->shape.count
                          ? DT_IN_PROGRESS
                          : DT_SUCCESS;
}

static void done(struct dt_request *request, size_t task)
{
    const struct dt_sched *sched = request->sched;
    request->comm->steps++;
    request->left--;
    size_t edge = sched->tasks[task].edges;
    for (; edge != DT_TASK_NONE; edge = sched->edges[edge].next) {
        size_t next = sched->edges[edge].task;
        if (--request->pending[next] == 0)
            request->ready[request->ready_tail++] = next;
    }
}

static void *at(const struct dt_request *request, struct dt_ref ref)
{
    return request->space[ref.space] + ref.offset;
}

static void send_or_receive(struct dt_request *request, size_t number)
{
    const struct dt_task *task = &request->sched->tasks[number];
    const struct dt_comm *comm = request->comm;
    size_t peer = comm->members[task->peer];
    struct dt_tl *tl = dt_world_route(comm->world, peer);
    struct dt_tl_req *message = &request->message[task->message];
    uint64_t tag = request->tag | task->slot;
    memset(message, 0, sizeof(*message));
    if (task->kind == DT_TASK_SEND)
        tl->ops->isend(tl, peer, request->note ? tag | DT_TAG_NOTICE : tag,
                       at(request, task->a), task->len, message);
    else
        tl->ops->irecv(tl, peer, tag, at(request, task->dst), task->len,
                       message);
    request->flight[request->nflight++] = number;
}

/* ---- on the board; each is false while it has to wait ---- */

static bool post(struct dt_request *request, const struct dt_task *task)
{
    struct dt_board *board = request->comm->board;
    bool in_place = false;
    const struct dt_board_piece piece = {.data = at(request, task->a),
                                         .len = task->len,
                                         .hole = task->offset,
                                         .hole_len = task->hole,
                                         .notice = request->note};
    if (!board->ops->post(board, request->round + request->base + task->round,
                          &piece, &in_place))
        return false;
    request->in_place |= in_place;
    return true;
}

/* len bytes at offset of what a rank shows; NULL: not there yet. */
static const char *see(struct dt_request *request, const struct dt_task *task,
                       size_t index)
{
    struct dt_board *board = request->comm->board;
    struct dt_board_view view;
    if (!board->ops->read(board, index,
                          request->round + request->base + task->round, &view))
        return NULL;
    if (view.len < task->offset || view.len - task->offset < task->len) {
        struct dt_error err;
        dt_error_set(&err, DT_ERR_PROC_FAILED,
                     "local rank %zu showed %zu bytes where %zu were expected: "
                     "the ranks disagree about the operation",
                     index, view.len, task->offset + task->len);
        dt_world_fail(request->comm->world, DT_ERR_PROC_FAILED, &err);
        return NULL;
    }
    request->note |= view.notice;
    return (const char *)view.data + task->offset;
}

static bool fold(struct dt_request *request, const struct dt_task *task)
{
    const struct dt_group *node = dt_layout_node(&request->comm->layout);
    const struct dt_shape *shape = &request->shape;
    for (size_t i = 0; i < node->size; i++) {
        request->inputs[i] =
            i == node->index ? at(request, task->a) : see(request, task, i);
        if (!request->inputs[i])
            return false;
    }
    dt_exec_reduce_n(at(request, task->dst), request->inputs, node->size,
                     task->len / dt_dtype_size(shape->dtype), shape->dtype,
                     shape->op, task->factor);
    return true;
}

static bool fetch(struct dt_request *request, const struct dt_task *task)
{
    const char *data = see(request, task, task->peer);
    if (!data)
        return false;
    if (task->len)
        memcpy(at(request, task->dst), data, task->len);
    return true;
}

/* What a task has read, or is about to pass on, counts only if nobody who
 * showed it had given up by then. */
static bool on_board(struct dt_request *request, size_t number)
{
    const struct dt_task *task = &request->sched->tasks[number];
    struct dt_tl *tl = request->comm->board->tl;
    bool could = task->kind == DT_TASK_POST   ? post(request, task)
                 : task->kind == DT_TASK_FOLD ? fold(request, task)
                                              : fetch(request, task);
    if (!could || tl->ops->revoked(tl))
        return false;
    request->uses[task->round]--;
    pass(request);
    done(request, number);
    return true;
}

/* ---- all kinds ---- */

static void start(struct dt_request *request, size_t number)
{
    const struct dt_task *task = &request->sched->tasks[number];
    const struct dt_shape *shape = &request->shape;
    size_t elements = task->len / dt_dtype_size(shape->dtype);
    switch (task->kind) {
    case DT_TASK_SEND:
    case DT_TASK_RECV:
        send_or_receive(request, number);
        return;
    case DT_TASK_POST:
    case DT_TASK_FOLD:
    case DT_TASK_FETCH:
        if (!on_board(request, number))
            request->watch[request->nwatch++] = number;
        return;
    case DT_TASK_REDUCE:
        dt_exec_reduce(at(request, task->dst), at(request, task->a),
                       at(request, task->b), elements, shape->dtype, shape->op);
        break;
    case DT_TASK_COPY:
        memcpy(at(request, task->dst), at(request, task->a), task->len);
        break;
    case DT_TASK_SCALE:
        dt_exec_scale(at(request, task->dst), at(request, task->a), elements,
                      shape->dtype, task->factor);
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
        const struct dt_tl_req *message =
            &request->message[request->sched->tasks[number].message];
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
        if (!message->send && message->tag & DT_TAG_NOTICE)
            request->note = true;
        done(request, number);
    }
    return moved;
}

/* Try again what waits for the board, in order; true if anything moved. Where
 * there is no room for a round, there is none for later ones, and nothing is
 * worth a look there yet. */
static bool retry(struct dt_request *request)
{
    size_t left = 0;
    uint32_t full = UINT32_MAX;
    for (size_t i = 0; i < request->nwatch; i++) {
        size_t number = request->watch[i];
        const struct dt_task *task = &request->sched->tasks[number];
        if (task->round < full && on_board(request, number))
            continue;
        if (task->kind == DT_TASK_POST && task->round < full)
            full = task->round;
        request->watch[left++] = number;
    }
    bool moved = left < request->nwatch;
    request->nwatch = left;
    return moved;
}

static bool progress_local(struct dt_request *request)
{
    struct dt_local *local = &request->local;
    struct dt_tl *tl = local->board->tl;
    bool moved = dt_local_progress(local);
    request->comm->steps += moved;
    request->passed = local->passed;
    request->note |= local->note;
    if (local->done && !tl->ops->revoked(tl))
        request->status = DT_SUCCESS;
    return moved;
}

/* All tasks are done: may the buffers be changed again? */
static void end(struct dt_request *request)
{
    struct dt_board *board = request->comm->board;
    if (!request->in_place ||
        board->ops->released(board, request->round + request->rounds))
        request->status = DT_SUCCESS;
}

bool dt_request_progress(struct dt_request *request)
{
    bool moved = false;
    if (request->status == DT_IN_PROGRESS && request->is_local)
        return progress_local(request);
    while (request->status == DT_IN_PROGRESS) {
        bool again = collect(request);
        again |= request->nwatch && retry(request);
        while (request->status == DT_IN_PROGRESS &&
               request->ready_head < request->ready_tail) {
            start(request, request->ready[request->ready_head++]);
            again = true;
        }
        if (request->status == DT_IN_PROGRESS && !request->left) {
            if (next_slice(request))
                again = true;
            else
                end(request);
        }
        if (!again)
            break;
        moved = true;
    }
    return moved;
}
