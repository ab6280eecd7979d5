/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_calls.c - a collective as calls of NCCL: one call, or a group of them.
 */
#include "exec/exec.h"
#include "gpu/coll/nccl.h"

/* What is only moved, is moved as bytes. */
struct put {
    struct dt_gpu_nccl *nccl;
    const struct dt_shape *shape;
    const char *send;
    char *recv;
    size_t elem;
    dt_stream_t stream;
    int code; /* the first that is no success; of no more than one group */
};

static bool reduces(const struct dt_shape *shape)
{
    return shape->coll == DT_COLL_ALLREDUCE || shape->coll == DT_COLL_REDUCE ||
           shape->coll == DT_COLL_REDUCE_SCATTER;
}

static int type_of(dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_DTYPE_I8:
        return DT_NCCL_I8;
    case DT_DTYPE_U8:
        return DT_NCCL_U8;
    case DT_DTYPE_I32:
        return DT_NCCL_I32;
    case DT_DTYPE_I64:
        return DT_NCCL_I64;
    case DT_DTYPE_F16:
        return DT_NCCL_F16;
    case DT_DTYPE_BF16:
        return DT_NCCL_BF16;
    case DT_DTYPE_F32:
        return DT_NCCL_F32;
    case DT_DTYPE_F64:
        return DT_NCCL_F64;
    case DT_DTYPE_F8E4M3:
    case DT_DTYPE_F8E5M2:
        break;
    }
    return -1;
}

static enum dt_nccl_op op_of(dt_op_t op)
{
    switch (op) {
    case DT_OP_MIN:
        return DT_NCCL_MIN;
    case DT_OP_MAX:
        return DT_NCCL_MAX;
    case DT_OP_AVG:
        return DT_NCCL_AVG;
    case DT_OP_PROD:
        return DT_NCCL_PROD;
    case DT_OP_SUM:
        break;
    }
    return DT_NCCL_SUM;
}

bool dt_gpu_nccl_serves(const struct dt_shape *shape)
{
    const bool is_float = dt_exec_is_float(shape->dtype);
    if (shape->coll == DT_COLL_SEND || shape->coll == DT_COLL_RECV)
        return false;
    if (!reduces(shape))
        return true;
    if (shape->prescale != 1 || shape->postscale != 1 ||
        type_of(shape->dtype) < 0)
        return false;
    return shape->op == DT_OP_SUM || shape->op == DT_OP_PROD ||
           is_float == (shape->op == DT_OP_AVG);
}

/* ---- messages ---- */

static void keep(struct put *put, int code)
{
    if (put->code == DT_NCCL_OK || put->code == DT_NCCL_IN_PROGRESS)
        put->code = code;
}

static void send(struct put *put, size_t peer, size_t at, size_t count)
{
    if (count)
        keep(put, put->nccl->api.ncclSend(
                      put->send + at * put->elem, count * put->elem, DT_NCCL_U8,
                      (int)peer, put->nccl->comm, put->stream));
}

static void receive(struct put *put, size_t peer, size_t at, size_t count)
{
    if (count)
        keep(put, put->nccl->api.ncclRecv(
                      put->recv + at * put->elem, count * put->elem, DT_NCCL_U8,
                      (int)peer, put->nccl->comm, put->stream));
}

/* Rows to all, and from all; NULL: none. With myself, too, unless the row is
 * where it should be already. */
static void put_messages(struct put *put)
{
    const struct dt_shape *shape = put->shape;
    const size_t me = put->nccl->rank;
    for (size_t r = 0; r < put->nccl->size; r++) {
        const size_t row = r * shape->count;
        bool out = put->send, in = put->recv;
        if (shape->coll == DT_COLL_GATHER)
            out = r == shape->root;
        else if (shape->coll == DT_COLL_SCATTER)
            in = r == shape->root;
        if (r == me && shape->in_place)
            out = in = false;
        if (out)
            send(put, r, shape->coll == DT_COLL_GATHER ? 0 : row, shape->count);
        if (in)
            receive(put, r, shape->coll == DT_COLL_SCATTER ? 0 : row,
                    shape->count);
    }
}

static void put_uneven_messages(struct put *put)
{
    const struct dt_shape *shape = put->shape;
    for (size_t r = 0; r < put->nccl->size; r++) {
        send(put, r, shape->senddispls[r], shape->sendcounts[r]);
        receive(put, r, shape->recvdispls[r], shape->recvcounts[r]);
    }
}

/* ---- uneven forms: one of each rank ---- */

static void put_bcasts(struct put *put)
{
    const struct dt_shape *shape = put->shape;
    for (size_t r = 0; r < put->nccl->size; r++)
        if (shape->sendcounts[r])
            keep(put,
                 put->nccl->api.ncclBroadcast(
                     put->send, put->recv + shape->recvdispls[r] * put->elem,
                     shape->sendcounts[r] * put->elem, DT_NCCL_U8, (int)r,
                     put->nccl->comm, put->stream));
}

static void put_reduces(struct put *put)
{
    const struct dt_shape *shape = put->shape;
    const char *at = put->send;
    for (size_t r = 0; r < put->nccl->size; r++) {
        if (shape->recvcounts[r])
            keep(put,
                 put->nccl->api.ncclReduce(
                     at, put->recv, shape->recvcounts[r],
                     (enum dt_nccl_type)type_of(shape->dtype), op_of(shape->op),
                     (int)r, put->nccl->comm, put->stream));
        at += shape->recvcounts[r] * put->elem;
    }
}

static void put_group(struct put *put, void (*calls)(struct put *put))
{
    keep(put, put->nccl->api.ncclGroupStart());
    calls(put);
    int failed = put->code;
    int code = put->nccl->api.ncclGroupEnd();
    put->code = failed == DT_NCCL_IN_PROGRESS ? DT_NCCL_OK : failed;
    keep(put, code);
}

/* ---- all ---- */

static void put_call(struct put *put)
{
    const struct dt_shape *shape = put->shape;
    const struct dt_gpu_nccl *nccl = put->nccl;
    const struct dt_nccl_api *api = &nccl->api;
    const enum dt_nccl_type type = (enum dt_nccl_type)type_of(shape->dtype);
    const size_t len = shape->count * put->elem;
    switch (shape->coll) {
    case DT_COLL_ALLREDUCE:
        put->code =
            api->ncclAllReduce(put->send, put->recv, shape->count, type,
                               op_of(shape->op), nccl->comm, put->stream);
        break;
    case DT_COLL_REDUCE:
        put->code = api->ncclReduce(put->send, put->recv, shape->count, type,
                                    op_of(shape->op), (int)shape->root,
                                    nccl->comm, put->stream);
        break;
    case DT_COLL_BCAST:
        put->code =
            api->ncclBroadcast(put->send, put->recv, len, DT_NCCL_U8,
                               (int)shape->root, nccl->comm, put->stream);
        break;
    case DT_COLL_ALLGATHER:
        if (shape->sendcounts)
            put_group(put, put_bcasts);
        else
            put->code = api->ncclAllGather(put->send, put->recv, len,
                                           DT_NCCL_U8, nccl->comm, put->stream);
        break;
    case DT_COLL_REDUCE_SCATTER:
        if (shape->recvcounts)
            put_group(put, put_reduces);
        else
            put->code = api->ncclReduceScatter(
                put->send, put->recv, shape->count, type, op_of(shape->op),
                nccl->comm, put->stream);
        break;
    case DT_COLL_ALLTOALL:
        put_group(put, shape->sendcounts ? put_uneven_messages : put_messages);
        break;
    case DT_COLL_GATHER:
    case DT_COLL_SCATTER:
        put_group(put, put_messages);
        break;
    case DT_COLL_SEND:
    case DT_COLL_RECV:
        break;
    }
}

int dt_nccl_put(struct dt_gpu_nccl *nccl, const struct dt_shape *shape,
                const void *sendbuf, void *recvbuf, dt_stream_t stream)
{
    struct put put = {.nccl = nccl,
                      .shape = shape,
                      .send = sendbuf,
                      .recv = recvbuf,
                      .elem = dt_dtype_size(shape->dtype),
                      .stream = stream,
                      .code = DT_NCCL_OK};
    put_call(&put);
    return put.code;
}

int dt_nccl_poll(struct dt_gpu_nccl *nccl)
{
    int code = DT_NCCL_OK;
    int asked = nccl->api.ncclCommGetAsyncError(nccl->comm, &code);
    return asked == DT_NCCL_OK ? code : asked;
}
