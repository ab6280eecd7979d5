/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node.c - collectives as exchanges among the GPUs of a node. The ranks open
 * their boards in four steps, and vote after each, so that all of them reach
 * the same result:
 *
 *   1. allocate a board, and export its handle
 *   2. import the others' boards
 *   3. put exchanges of numbers on a stream
 *   4. wait for them, and compare the numbers
 *
 * The test has a time limit, because a GPU that does not see what another one
 * writes waits for it forever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/exec.h"
#include "gpu/coll/node.h"
#include "gpu/coll/vote.h"

/* A board has two slots of this. With 8 MiB a round takes 20 us at the 400 GB/s
 * of NVLink 4, a few times what its flags cost, and larger ones would gain
 * little more; 16 MiB per communicator can be spared on any GPU that trains. */
#define DT_GPU_NODE_SLOT ((size_t)8 << 20)

/* A kernel looks at the abort word all the time: seconds until a GPU is taken
 * for lost. */
#define DT_GPU_NODE_ABORTED 10

/* ---- an exchange ---- */

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

static struct dt_gpu_exchange exchange_of(const struct dt_gpu_node *node,
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

dt_result_t dt_gpu_node_start(struct dt_gpu_node *node,
                              const struct dt_shape *shape, const void *sendbuf,
                              void *recvbuf, dt_stream_t stream,
                              uint32_t *ticket, struct dt_error *err)
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
    struct dt_gpu_exchange x = exchange_of(node, shape, sendbuf, recvbuf);
    shape_exchange(node, shape, &x);
    /* a replay would write an old ticket again */
    x.done = capturing ? &node->words->replayed : &node->words->done;
    x.done_value = node->last + 1;
    rc = ops->exchange(node->gpu, node->device, &x, stream, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!capturing) {
        node->last++;
        node->stream = stream;
    }
    *ticket = node->last;
    return DT_SUCCESS;
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

static bool wait_for(const struct dt_gpu_node *node, uint32_t ticket,
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
        !wait_for(node, node->last, node->timeout))
        dt_gpu_node_abort(node);
    if (node->words && !wait_for(node, node->last, DT_GPU_NODE_ABORTED)) {
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

/* ---- opening ---- */

/* The first kernel of a process may have to be loaded, and the ranks may share
 * one GPU. */
#define TEST_SECONDS 20

/* What a rank contributes to the vote on a step. */
struct vote {
    struct dt_gpu_vote base;
    char bus[24];
    struct dt_gpu_handle handle;
};

struct opening {
    struct dt_comm *comm;
    struct dt_gpu *gpu;
    int device;
    struct dt_gpu_node *node;
    dt_stream_t stream; /* of the test */
    struct vote mine, all[DT_GPU_PEERS];
};

/* ---- 1 ---- */

static dt_result_t get_memory(struct opening *o, struct dt_error *err)
{
    const struct dt_gpu_ops *ops = o->gpu->ops;
    struct dt_gpu_node *node = o->node;
    void *words = NULL;
    dt_result_t rc = ops->bus(o->gpu, o->device, o->mine.bus, err);
    if (rc == DT_SUCCESS)
        rc = ops->share_alloc(o->gpu, o->device,
                              dt_gpu_board_size(DT_GPU_NODE_SLOT),
                              &node->board[node->rank], &o->mine.handle, err);
    if (rc == DT_SUCCESS)
        rc = ops->host_alloc(o->gpu, o->device, sizeof(*node->words), &words,
                             err);
    node->words = words;
    return rc;
}

static void make_board(struct opening *o)
{
    struct dt_error err = {"no memory"};
    struct dt_gpu_node *node = calloc(1, sizeof(*node));
    if (!node) {
        dt_gpu_object(&o->mine.base, &err);
        return;
    }
    o->node = node;
    node->gpu = o->gpu;
    node->device = o->device;
    node->rank = o->comm->rank;
    node->size = o->comm->size;
    node->timeout = o->comm->world->timeout;
    if (get_memory(o, &err) != DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

/* ---- 2 ---- */

static dt_result_t import_board(struct opening *o, size_t r,
                                struct dt_error *why)
{
    struct dt_error err;
    /* importing it may succeed where the GPU cannot read it */
    dt_result_t rc =
        o->gpu->ops->reaches(o->gpu, o->device, o->all[r].bus, &err);
    if (rc != DT_SUCCESS)
        return dt_error_set(why, rc, "rank %zu's memory: %.256s", r, err.text);
    rc = o->gpu->ops->import(o->gpu, o->device, &o->all[r].handle,
                             &o->node->board[r], &err);
    if (rc != DT_SUCCESS)
        dt_error_set(why, rc,
                     "it cannot import memory of rank %zu (GPU %s): %.256s", r,
                     o->all[r].bus, err.text);
    return rc;
}

static bool is_shared(const struct opening *o)
{
    for (size_t r = 1; r < o->comm->size; r++)
        for (size_t q = 0; q < r; q++)
            if (!strncmp(o->all[r].bus, o->all[q].bus, sizeof(o->mine.bus)))
                return true;
    return false;
}

static void import_boards(struct opening *o)
{
    struct dt_error why = {""};
    o->node->shares = is_shared(o);
    for (size_t r = 0; !why.text[0] && r < o->node->size; r++) {
        o->all[r].bus[sizeof(o->all[r].bus) - 1] = '\0';
        if (r != o->node->rank)
            import_board(o, r, &why);
    }
    dt_gpu_object(&o->mine.base, &why);
}

/* ---- 3 ---- */

static uint32_t number(size_t from, size_t to, size_t round, size_t i)
{
    size_t n = (from * DT_GPU_PEERS + to) * DT_GPU_NODE_ROUNDS + round;
    return (uint32_t)(n * DT_GPU_NODE_NUMBERS + i + 1) * 2654435761u;
}

/* Every rank shows every rank other numbers. */
static dt_result_t start_round(struct opening *o, size_t round,
                               struct dt_error *err)
{
    struct dt_gpu_node *node = o->node;
    const struct dt_shape shape = {.coll = DT_COLL_ALLTOALL,
                                   .dtype = DT_DTYPE_I32,
                                   .count = DT_GPU_NODE_NUMBERS,
                                   .prescale = 1,
                                   .postscale = 1};
    uint32_t(*shown)[DT_GPU_NODE_NUMBERS] = node->words->shown[round];
    uint32_t ticket;
    node->post = round % 2 ? DT_GPU_NODE_POST : 0;
    for (size_t r = 0; r < node->size; r++)
        for (size_t i = 0; i < DT_GPU_NODE_NUMBERS; i++)
            shown[r][i] = number(node->rank, r, round, i);
    return dt_gpu_node_start(node, &shape, shown, node->words->seen[round],
                             o->stream, &ticket, err);
}

static void start_test(struct opening *o)
{
    struct dt_gpu *gpu = o->node->gpu;
    struct dt_error err;
    dt_result_t rc =
        gpu->ops->stream_create(gpu, o->node->device, &o->stream, &err);
    for (size_t k = 0; rc == DT_SUCCESS && k < DT_GPU_NODE_ROUNDS; k++)
        rc = start_round(o, k, &err);
    o->node->post = DT_GPU_NODE_POST;
    if (rc != DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

/* ---- 4 ---- */

static bool right(const struct dt_gpu_node *node, size_t r)
{
    for (size_t k = 0; k < DT_GPU_NODE_ROUNDS; k++)
        for (size_t i = 0; i < DT_GPU_NODE_NUMBERS; i++)
            if (node->words->seen[k][r][i] != number(r, node->rank, k, i))
                return false;
    return true;
}

static void end_test(struct opening *o)
{
    struct dt_gpu_node *node = o->node;
    struct dt_error err = {""};
    size_t r = 0;
    if (!wait_for(node, node->last, TEST_SECONDS))
        dt_error_set(&err, DT_ERR_TIMED_OUT,
                     "what the other ranks' GPUs wrote did not come within %d "
                     "s, though their memory could be imported: the IOMMU, or "
                     "ACS in a PCIe switch, may be in the way",
                     TEST_SECONDS);
    while (!err.text[0] && r < node->size && right(node, r))
        r++;
    if (!err.text[0] && r < node->size)
        dt_error_set(&err, DT_ERR_UNSUPPORTED,
                     "it reads other numbers from the GPU of rank %zu than "
                     "that one wrote",
                     r);
    dt_gpu_object(&o->mine.base, &err);
}

/* ---- all ---- */

static dt_result_t vote_on(struct opening *o, bool *yes, char reason[512],
                           struct dt_error *err)
{
    return dt_gpu_vote(o->comm, &o->mine.base, o->all, sizeof(o->mine), yes,
                       reason, err);
}

/* No rank may free what another still has mapped, so all release first. */
static void undo(struct opening *o, bool together)
{
    struct dt_gpu_node *node = o->node;
    char reason[512];
    bool yes;
    if (node && node->words)
        dt_gpu_node_abort(node);
    dt_gpu_node_leave(node);
    if (o->stream && !node->stuck)
        o->gpu->ops->stream_destroy(o->gpu, o->stream);
    if (together)
        vote_on(o, &yes, reason, NULL);
    dt_gpu_node_close(node);
    o->node = NULL;
}

static dt_result_t go_through(struct opening *o, bool *yes, char reason[512],
                              struct dt_error *err)
{
    static void (*const steps[])(struct opening * o) = {
        make_board, import_boards, start_test, end_test};
    dt_result_t rc = DT_SUCCESS;
    *yes = true;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        steps[i](o);
        rc = vote_on(o, yes, reason, err);
        if (rc != DT_SUCCESS || !*yes)
            break;
    }
    return rc;
}

static bool few_enough(const struct dt_comm *comm, char reason[512])
{
    if (comm->size > DT_GPU_PEERS)
        snprintf(reason, 512, "it has %zu ranks, more than %d", comm->size,
                 DT_GPU_PEERS);
    else if (comm->layout.nnodes > 1)
        snprintf(reason, 512, "its ranks are on %zu nodes",
                 comm->layout.nnodes);
    return comm->size <= DT_GPU_PEERS && comm->layout.nnodes == 1;
}

dt_result_t dt_gpu_node_open(struct dt_comm *comm, struct dt_gpu *gpu,
                             int device, struct dt_gpu_node **node,
                             char reason[512], struct dt_error *err)
{
    struct opening o = {.comm = comm, .gpu = gpu, .device = device};
    bool yes;
    *node = NULL;
    if (!few_enough(comm, reason))
        return DT_SUCCESS;
    dt_result_t rc = go_through(&o, &yes, reason, err);
    if (rc != DT_SUCCESS || !yes) {
        undo(&o, rc == DT_SUCCESS);
        return rc;
    }
    gpu->ops->stream_destroy(gpu, o.stream);
    *node = o.node;
    return DT_SUCCESS;
}
