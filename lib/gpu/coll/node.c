/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node.c - collectives as exchanges, put on the caller's streams. */
#include <stdlib.h>
#include <time.h>

#include "gpu/coll/node_part.h"
#include "exec/exec.h"

/* What a link moves in the time of one round of flags, some 2.5 us at some
 * 200 GB/s. */
#define ROUND_BYTES ((size_t)512 << 10)

/* In REDUCE a rank reads (n - 1) * len bytes of the others, in SPREAD
 * 2 * (n - 1) / n * len, for one round of flags more. For two ranks that is the
 * same. */
static bool is_long(size_t n, size_t len)
{
    return n > 2 && len > ROUND_BYTES * n / ((n - 1) * (n - 2));
}

/* One rank's fold with nothing to do would still make all NaNs alike, which the
 * host does not. */
static enum dt_gpu_way reduction(const struct dt_gpu_node *node,
                                 const struct dt_gpu_exchange *exchange)
{
    if (node->size == 1 && exchange->scale == 1 && exchange->op != DT_OP_AVG)
        return DT_GPU_PLACE;
    return DT_GPU_REDUCE;
}

/* What differs between the collectives. */
static void shape_exchange(const struct dt_gpu_node *node,
                           const struct dt_shape *shape,
                           struct dt_gpu_exchange *x)
{
    const bool root = node->rank == shape->root;
    const size_t row = shape->count * dt_dtype_size(shape->dtype);
    switch (shape->coll) {
    case DT_COLL_ALLREDUCE:
        x->way = is_long(node->size, row) ? DT_GPU_SPREAD : reduction(node, x);
        break;
    case DT_COLL_REDUCE:
        x->way = reduction(node, x);
        x->recv = root ? x->recv : NULL;
        break;
    case DT_COLL_REDUCE_SCATTER:
        x->way = reduction(node, x);
        x->send_rows = node->size;
        x->send_pitch = row;
        break;
    case DT_COLL_BCAST:
        x->send = root ? x->send : NULL;
        x->recv = root ? NULL : x->recv;
        x->from = (uint32_t)1 << shape->root;
        break;
    case DT_COLL_ALLGATHER:
        x->recv_pitch = row;
        break;
    case DT_COLL_GATHER:
        x->recv = root ? x->recv : NULL;
        x->recv_pitch = row;
        break;
    case DT_COLL_SCATTER:
        x->send = root ? x->send : NULL;
        x->send_rows = node->size;
        x->send_pitch = row;
        x->from = (uint32_t)1 << shape->root;
        break;
    case DT_COLL_ALLTOALL:
        x->send_rows = node->size;
        x->send_pitch = x->recv_pitch = row;
        break;
    case DT_COLL_SEND:
    case DT_COLL_RECV:
        break;
    }
    x->post = x->way != DT_GPU_SPREAD && row <= node->post;
}

struct dt_gpu_exchange dt_gpu_node_exchange(const struct dt_gpu_node *node,
                                            const struct dt_shape *shape,
                                            const void *sendbuf, void *recvbuf)
{
    struct dt_gpu_exchange x = {
        .way = DT_GPU_PLACE,
        .rank = node->rank,
        .size = node->size,
        .slot = DT_GPU_NODE_SLOT,
        .send = sendbuf,
        .recv = recvbuf,
        .count = sendbuf || recvbuf ? shape->count : 0,
        .send_rows = 1,
        .from = ((uint32_t)1 << node->size) - 1,
        .dtype = shape->dtype,
        .op = shape->op,
        .scale = shape->prescale * shape->postscale,
        .abort = &node->words->abort,
    };
    for (size_t r = 0; r < node->size; r++)
        x.board[r] = node->board[r];
    return x;
}

/* Exchanges of one rank never overlap, nor overtake each other: their rounds
 * would be taken for each other's. The other stream may be gone by now, so the
 * new one waits for what the exchange there writes at its end. */
static dt_result_t follow(const struct dt_gpu_node *node, dt_stream_t stream,
                          bool capturing, struct dt_error *err)
{
    if (stream == node->stream || dt_gpu_node_done(node, node->last))
        return DT_SUCCESS;
    if (capturing)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a collective of this communicator is under way "
                            "on another stream, which a captured one cannot "
                            "wait for: complete it before the capture");
    return node->gpu->ops->await(node->gpu, node->device, &node->words->done,
                                 node->last, stream, err);
}

bool dt_gpu_node_serves(const struct dt_shape *shape)
{
    if (shape->coll == DT_COLL_SEND || shape->coll == DT_COLL_RECV ||
        shape->sendcounts || shape->senddispls || shape->recvcounts ||
        shape->recvdispls)
        return false;
    const bool reduces = shape->coll == DT_COLL_ALLREDUCE ||
                         shape->coll == DT_COLL_REDUCE ||
                         shape->coll == DT_COLL_REDUCE_SCATTER;
    return !reduces || dt_exec_supports(shape->dtype, shape->op);
}

dt_result_t dt_gpu_node_put(struct dt_gpu_node *node, struct dt_gpu_exchange *x,
                            dt_stream_t stream, uint32_t *ticket,
                            struct dt_error *err)
{
    const struct dt_gpu_ops *ops = node->gpu->ops;
    int device;
    bool capturing;
    dt_result_t rc =
        ops->stream_device(node->gpu, stream, &device, &capturing, err);
    if (rc == DT_SUCCESS)
        rc = follow(node, stream, capturing, err);
    if (rc != DT_SUCCESS)
        return rc;
    /* a replay would write an old ticket again */
    x->done = capturing ? &node->words->replayed : &node->words->done;
    x->done_value = node->last + 1;
    rc = ops->exchange(node->gpu, node->device, x, stream, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!capturing) {
        node->last++;
        node->stream = stream;
    }
    *ticket = node->last;
    return DT_SUCCESS;
}

dt_result_t dt_gpu_node_start(struct dt_gpu_node *node,
                              const struct dt_shape *shape, const void *sendbuf,
                              void *recvbuf, dt_stream_t stream,
                              uint32_t *ticket, struct dt_error *err)
{
    struct dt_gpu_exchange x =
        dt_gpu_node_exchange(node, shape, sendbuf, recvbuf);
    shape_exchange(node, shape, &x);
    return dt_gpu_node_put(node, &x, stream, ticket, err);
}

bool dt_gpu_node_done(const struct dt_gpu_node *node, uint32_t ticket)
{
    uint32_t done = __atomic_load_n(&node->words->done, __ATOMIC_ACQUIRE);
    return (int32_t)(done - ticket) >= 0;
}

uint32_t dt_gpu_node_last(const struct dt_gpu_node *node)
{
    return node->last;
}

void dt_gpu_node_abort(struct dt_gpu_node *node)
{
    __atomic_store_n(&node->words->abort, 1, __ATOMIC_RELEASE);
}

bool dt_gpu_node_wait(const struct dt_gpu_node *node, uint32_t ticket,
                      long seconds)
{
    const struct timespec nap = {.tv_nsec = 20000};
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    while (!dt_gpu_node_done(node, ticket)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > end.tv_sec ||
            (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec))
            return false;
        nanosleep(&nap, NULL);
    }
    return true;
}

static bool aborted(const struct dt_gpu_node *node)
{
    return __atomic_load_n(&node->words->abort, __ATOMIC_ACQUIRE);
}

void dt_gpu_node_leave(struct dt_gpu_node *node)
{
    if (!node || node->left)
        return;
    node->left = true;
    if (node->words && !aborted(node) &&
        !dt_gpu_node_wait(node, node->last, node->timeout))
        dt_gpu_node_abort(node);
    if (node->words &&
        !dt_gpu_node_wait(node, node->last, DT_GPU_NODE_ABORTED)) {
        node->stuck = true;
        return;
    }
    for (size_t r = 0; r < node->size; r++)
        if (r != node->rank && node->board[r])
            node->gpu->ops->release(node->gpu, node->board[r]);
}

void dt_gpu_node_close(struct dt_gpu_node *node)
{
    if (!node)
        return;
    const struct dt_gpu_ops *ops = node->gpu->ops;
    dt_gpu_node_leave(node);
    if (!node->stuck) {
        if (node->board[node->rank])
            ops->share_free(node->gpu, node->board[node->rank], NULL);
        if (node->words)
            ops->host_free(node->gpu, node->words);
    }
    free(node);
}
