/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* request.c - running a schedule.
 *
 *   waiting --(last dependency)--> ready --> done
 *                                  ready --> in flight --> done, a message
 *                                  ready --> watched --> done, on the board
 *
 * Operations become ready in the order in which their dependencies end, and
 * start in that order, so early chunks are on their way before late ones begin.
 */
#include "coll/engine/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/notice.h"
#include "coll/engine/comm.h"
#include "coll/engine/tag.h"
#include "exec/exec.h"

/* ---- the schedules of a request, and its memory ---- */

static void build_message(struct dt_request *request)
{
    const struct dt_shape *shape = &request->shape;
    struct dt_sched *sched = &request->plans[0];
    size_t len = shape->count * dt_dtype_size(shape->dtype);
    size_t operation =
        shape->coll == DT_COLL_SEND
            ? dt_sched_send(sched, shape->root, dt_ref(DT_SPACE_SEND, 0), len)
            : dt_sched_recv(sched, shape->root, dt_ref(DT_SPACE_RECV, 0), len);
    if (operation != DT_OPERATION_NONE)
        sched->operations[operation].slot = DT_TAG_P2P;
}

/* The shape of a segment. Its blocks are as far from each other as those of the
 * whole, so it has displacements. */
static struct dt_shape segment_shape(const struct dt_shape *whole, size_t count,
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

static void build_segments(struct dt_request *request, size_t segment)
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
    size_t counts[] = {segment, (count - 1) % segment + 1};
    request->segment = segment;
    for (size_t i = 0; i < 2; i++) {
        struct dt_shape shape =
            segment_shape(&request->shape, counts[i], displs);
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
    request->segment = dt_at_least(request->shape.count, 1);
    if (dt_shape_is_message(&request->shape)) {
        build_message(request);
    } else {
        if (dt_algorithm_segment(&plan) < request->shape.count)
            build_segments(request, dt_algorithm_segment(&plan));
        else
            dt_algorithm_build(&plan);
    }
    dt_result_t rc = dt_sched_finish(&request->plans[0], err);
    return rc == DT_SUCCESS ? dt_sched_finish(&request->plans[1], err) : rc;
}

static bool alloc(struct dt_request *request)
{
    const struct dt_sched *one = &request->plans[0], *two = &request->plans[1];
    size_t n = dt_at_least(one->noperations, two->noperations) +
               1; /* never zero bytes */
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
static size_t full_segments(const struct dt_request *request)
{
    size_t count = request->shape.count;
    return count ? (count - 1) / request->segment : 0;
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
        dt_at_least(full_segments(request), 1) * request->plans[0].rounds +
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

/* ---- segments ---- */

static bool is_on_board(const struct dt_operation *operation)
{
    return operation->kind == DT_OPERATION_POST ||
           operation->kind == DT_OPERATION_REDUCE_ROUND ||
           operation->kind == DT_OPERATION_FETCH;
}

/* Count this rank's operations in each round. Its own post counts, too: before
 * it, the place of that piece must not be used by a later round. */
static void count_uses(struct dt_request *request)
{
    const struct dt_sched *sched = request->sched;
    memset(request->uses, 0, sched->rounds * sizeof(*request->uses));
    for (size_t i = 0; sched->rounds && i < sched->noperations; i++)
        if (is_on_board(&sched->operations[i]))
            request->uses[sched->operations[i].round]++;
}

/* Count the rounds from the first on in which no operation is left. */
static void count_released(struct dt_request *request)
{
    while (request->released < request->base + request->sched->rounds &&
           !request->uses[request->released - request->base])
        request->released++;
}

/* Begin the segment at request->first. */
static void begin_segment(struct dt_request *request)
{
    bool last = request->shape.count - request->first <= request->segment;
    const struct dt_sched *sched = &request->plans[last && request->first > 0];
    request->sched = sched;
    request->left = sched->noperations;
    request->ready_head = request->ready_tail = 0;
    request->nflight = request->nwatch = 0;
    count_uses(request);
    count_released(request);
    for (size_t i = 0; i < sched->noperations; i++) {
        request->pending[i] = sched->operations[i].ndeps;
        if (!request->pending[i])
            request->ready[request->ready_tail++] = i;
    }
}

/* Begin the next segment; false: this was the last. It uses the same tags,
 * which is safe as messages of one peer and tag keep their order. */
static bool next_segment(struct dt_request *request)
{
    size_t bytes = request->segment * dt_dtype_size(request->shape.dtype);
    if (request->shape.count - request->first <= request->segment)
        return false;
    request->first += request->segment;
    request->base += request->sched->rounds;
    for (int i = DT_SPACE_SEND; i <= DT_SPACE_RECV; i++)
        if (request->space[i]) /* else this rank needs none */
            request->space[i] += bytes;
    begin_segment(request);
    return true;
}

void dt_request_begin(struct dt_request *request, const void *sendbuf,
                      void *recvbuf)
{
    request->notice = dt_notice_seen();
    request->released = 0;
    if (request->is_local) {
        request->status = DT_IN_PROGRESS;
        dt_local_begin(&request->local, request->comm->board, &request->shape,
                       sendbuf, recvbuf, request->round, request->notice);
        return;
    }
    request->space[DT_SPACE_SEND] = (char *)sendbuf; /* only read from */
    request->space[DT_SPACE_RECV] = recvbuf;
    request->in_place = false;
    request->first = request->base = 0;
    begin_segment(request);
    request->status = request->left || request->segment < request->shape.count
                          ? DT_IN_PROGRESS
                          : DT_SUCCESS;
}

static void done(struct dt_request *request, size_t operation)
{
    const struct dt_sched *sched = request->sched;
    request->comm->steps++;
    request->left--;
    size_t edge = sched->operations[operation].edges;
    for (; edge != DT_OPERATION_NONE; edge = sched->edges[edge].next) {
        size_t next = sched->edges[edge].operation;
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
    const struct dt_operation *operation = &request->sched->operations[number];
    const struct dt_comm *comm = request->comm;
    size_t peer = comm->members[operation->peer];
    struct dt_tl *tl = dt_world_route(comm->world, peer);
    struct dt_tl_req *message = &request->message[operation->message];
    uint64_t tag = request->tag | operation->slot;
    memset(message, 0, sizeof(*message));
    if (operation->kind == DT_OPERATION_SEND)
        tl->ops->isend(tl, peer, request->notice ? tag | DT_TAG_NOTICE : tag,
                       at(request, operation->a), operation->len, message);
    else
        tl->ops->irecv(tl, peer, tag, at(request, operation->dst),
                       operation->len, message);
    request->flight[request->nflight++] = number;
}

/* ---- on the board; each is false while it has to wait ---- */

static bool post(struct dt_request *request,
                 const struct dt_operation *operation)
{
    struct dt_board *board = request->comm->board;
    bool in_place = false;
    const struct dt_board_piece piece = {.data = at(request, operation->a),
                                         .len = operation->len,
                                         .hole = operation->offset,
                                         .hole_len = operation->hole,
                                         .notice = request->notice};
    if (!board->ops->post(board,
                          request->round + request->base + operation->round,
                          &piece, &in_place))
        return false;
    request->in_place |= in_place;
    return true;
}

/* len bytes at offset of the piece that a rank posted; NULL: not posted yet. */
static const char *read_piece(struct dt_request *request,
                              const struct dt_operation *operation,
                              size_t index)
{
    struct dt_board *board = request->comm->board;
    struct dt_board_view view;
    if (!board->ops->read(board, index,
                          request->round + request->base + operation->round,
                          &view))
        return NULL;
    if (view.len < operation->offset ||
        view.len - operation->offset < operation->len) {
        struct dt_error err;
        dt_error_set(&err, DT_ERR_PROC_FAILED,
                     "local rank %zu posted %zu bytes where %zu were expected: "
                     "the ranks disagree about the collective",
                     index, view.len, operation->offset + operation->len);
        dt_world_fail(request->comm->world, DT_ERR_PROC_FAILED, &err);
        return NULL;
    }
    request->notice |= view.notice;
    return (const char *)view.data + operation->offset;
}

static bool reduce_round(struct dt_request *request,
                         const struct dt_operation *operation)
{
    const struct dt_group *node = dt_layout_node(&request->comm->layout);
    const struct dt_shape *shape = &request->shape;
    for (size_t i = 0; i < node->size; i++) {
        request->inputs[i] = i == node->index
                                 ? at(request, operation->a)
                                 : read_piece(request, operation, i);
        if (!request->inputs[i])
            return false;
    }
    dt_exec_reduce_n(at(request, operation->dst), request->inputs, node->size,
                     operation->len / dt_dtype_size(shape->dtype), shape->dtype,
                     shape->op, operation->factor);
    return true;
}

static bool fetch(struct dt_request *request,
                  const struct dt_operation *operation)
{
    const char *data = read_piece(request, operation, operation->peer);
    if (!data)
        return false;
    if (operation->len)
        memcpy(at(request, operation->dst), data, operation->len);
    return true;
}

/* What an operation has read, or is about to pass on, counts only if nobody who
 * showed it had given up by then. */
static bool on_board(struct dt_request *request, size_t number)
{
    const struct dt_operation *operation = &request->sched->operations[number];
    struct dt_tl *tl = request->comm->board->tl;
    bool could = operation->kind == DT_OPERATION_POST ? post(request, operation)
                 : operation->kind == DT_OPERATION_REDUCE_ROUND
                     ? reduce_round(request, operation)
                     : fetch(request, operation);
    if (!could || tl->ops->revoked(tl))
        return false;
    request->uses[operation->round]--;
    count_released(request);
    done(request, number);
    return true;
}

/* ---- all kinds ---- */

static void start(struct dt_request *request, size_t number)
{
    const struct dt_operation *operation = &request->sched->operations[number];
    const struct dt_shape *shape = &request->shape;
    size_t elements = operation->len / dt_dtype_size(shape->dtype);
    switch (operation->kind) {
    case DT_OPERATION_SEND:
    case DT_OPERATION_RECV:
        send_or_receive(request, number);
        return;
    case DT_OPERATION_POST:
    case DT_OPERATION_REDUCE_ROUND:
    case DT_OPERATION_FETCH:
        if (!on_board(request, number))
            request->watch[request->nwatch++] = number;
        return;
    case DT_OPERATION_REDUCE:
        dt_exec_reduce(at(request, operation->dst), at(request, operation->a),
                       at(request, operation->b), elements, shape->dtype,
                       shape->op);
        break;
    case DT_OPERATION_COPY:
        memcpy(at(request, operation->dst), at(request, operation->a),
               operation->len);
        break;
    case DT_OPERATION_SCALE:
        dt_exec_scale(at(request, operation->dst), at(request, operation->a),
                      elements, shape->dtype, operation->factor);
        break;
    case DT_OPERATION_DIVIDE:
        dt_exec_divide(at(request, operation->dst), elements, shape->dtype,
                       request->comm->size);
        break;
    case DT_OPERATION_JOIN:
        break;
    }
    done(request, number);
}

/* Complete the operations of messages that have ended; true if there were
 * any. */
static bool collect(struct dt_request *request)
{
    bool moved = false;
    for (size_t i = 0; i < request->nflight;) {
        size_t number = request->flight[i];
        const struct dt_tl_req *message =
            &request->message[request->sched->operations[number].message];
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
            request->notice = true;
        done(request, number);
    }
    return moved;
}

/* Try the operations that wait for the board again, in order; true if anything
 * moved. Where the board has no room for a round, it has none for later ones,
 * and no rank has posted in them. */
static bool retry(struct dt_request *request)
{
    size_t left = 0;
    uint32_t full = UINT32_MAX;
    for (size_t i = 0; i < request->nwatch; i++) {
        size_t number = request->watch[i];
        const struct dt_operation *operation =
            &request->sched->operations[number];
        if (operation->round < full && on_board(request, number))
            continue;
        if (operation->kind == DT_OPERATION_POST && operation->round < full)
            full = operation->round;
        request->watch[left++] = number;
    }
    bool moved = left < request->nwatch;
    request->nwatch = left;
    return moved;
}

/* One that is done, but whose transport was revoked meanwhile, stays in
 * progress until the failure is known. */
static bool progress_local(struct dt_request *request)
{
    struct dt_local *local = &request->local;
    struct dt_tl *tl = local->board->tl;
    bool moved = !local->done && dt_local_progress(local);
    request->comm->steps += moved;
    request->released = local->released;
    request->notice |= local->notice;
    if (local->done && !tl->ops->revoked(tl))
        request->status = DT_SUCCESS;
    return moved;
}

/* All operations are done: may the buffers be changed again? */
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
            if (next_segment(request))
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
