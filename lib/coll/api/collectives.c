/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* collectives.c - the public collectives, send and receive: each makes a
 * struct dt_call of its arguments, and runs or starts it. */
#include "coll/api/call.h"

/* For calls without a reduction op: the value is not looked at. */
#define NO_OP DT_OP_SUM

static struct dt_call make(enum dt_call_kind kind, enum dt_coll coll,
                           const void *sendbuf, void *recvbuf, size_t count,
                           dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                           dt_stream_t stream)
{
    return (struct dt_call){
        .kind = kind,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = coll,
                  .dtype = dtype,
                  .op = op,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

/* The same with a root, or with a peer to send to or receive from. */
static struct dt_call rooted(struct dt_call call, int root)
{
    call.root = root;
    return call;
}

static struct dt_call scaled(struct dt_call call, double prescale,
                             double postscale)
{
    call.shape.prescale = prescale;
    call.shape.postscale = postscale;
    return call;
}

static struct dt_call uneven(struct dt_call call, const size_t *sendcounts,
                             const size_t *senddispls, const size_t *recvcounts,
                             const size_t *recvdispls)
{
    call.shape.sendcounts = sendcounts;
    call.shape.senddispls = senddispls;
    call.shape.recvcounts = recvcounts;
    call.shape.recvdispls = recvdispls;
    return call;
}

#define LIST(...) __VA_ARGS__

/* dt_NAME, and its i-form dt_iNAME: the list of parameters, and the struct
 * dt_call that both make of them. */
#define BOTH_FORMS(name, parameters, made)                                     \
    dt_result_t dt_##name(LIST parameters)                                     \
    {                                                                          \
        struct dt_call call = made;                                            \
        return dt_call_run(&call);                                             \
    }                                                                          \
    dt_result_t dt_i##name(LIST parameters, dt_request_t *request)             \
    {                                                                          \
        struct dt_call call = made;                                            \
        return dt_call_start(&call, request);                                  \
    }

/* ---- with a reduction ---- */

BOTH_FORMS(allreduce,
           (const void *sendbuf, void *recvbuf, size_t count, dt_dtype_t dtype,
            dt_op_t op, dt_comm_t comm, dt_stream_t stream),
           make(DT_CALL_ALLREDUCE, DT_COLL_ALLREDUCE, sendbuf, recvbuf, count,
                dtype, op, comm, stream))

BOTH_FORMS(allreduce_scaled,
           (const void *sendbuf, void *recvbuf, size_t count, dt_dtype_t dtype,
            dt_op_t op, double prescale, double postscale, dt_comm_t comm,
            dt_stream_t stream),
           scaled(make(DT_CALL_ALLREDUCE_SCALED, DT_COLL_ALLREDUCE, sendbuf,
                       recvbuf, count, dtype, op, comm, stream),
                  prescale, postscale))

BOTH_FORMS(reduce,
           (const void *sendbuf, void *recvbuf, size_t count, dt_dtype_t dtype,
            dt_op_t op, int root, dt_comm_t comm, dt_stream_t stream),
           rooted(make(DT_CALL_REDUCE, DT_COLL_REDUCE, sendbuf, recvbuf, count,
                       dtype, op, comm, stream),
                  root))

BOTH_FORMS(reduce_scatter,
           (const void *sendbuf, void *recvbuf, size_t count, dt_dtype_t dtype,
            dt_op_t op, dt_comm_t comm, dt_stream_t stream),
           make(DT_CALL_REDUCE_SCATTER, DT_COLL_REDUCE_SCATTER, sendbuf,
                recvbuf, count, dtype, op, comm, stream))

BOTH_FORMS(reduce_scatterv,
           (const void *sendbuf, void *recvbuf, const size_t *counts,
            dt_dtype_t dtype, dt_op_t op, dt_comm_t comm, dt_stream_t stream),
           uneven(make(DT_CALL_REDUCE_SCATTERV, DT_COLL_REDUCE_SCATTER, sendbuf,
                       recvbuf, 0, dtype, op, comm, stream),
                  NULL, NULL, counts, NULL))

/* ---- without one ---- */

BOTH_FORMS(bcast,
           (void *buf, size_t count, dt_dtype_t dtype, int root, dt_comm_t comm,
            dt_stream_t stream),
           rooted(make(DT_CALL_BCAST, DT_COLL_BCAST, buf, buf, count, dtype,
                       NO_OP, comm, stream),
                  root))

BOTH_FORMS(allgather,
           (const void *sendbuf, void *recvbuf, size_t count, dt_dtype_t dtype,
            dt_comm_t comm, dt_stream_t stream),
           make(DT_CALL_ALLGATHER, DT_COLL_ALLGATHER, sendbuf, recvbuf, count,
                dtype, NO_OP, comm, stream))

BOTH_FORMS(allgatherv,
           (const void *sendbuf, void *recvbuf, const size_t *counts,
            const size_t *displs, dt_dtype_t dtype, dt_comm_t comm,
            dt_stream_t stream),
           uneven(make(DT_CALL_ALLGATHERV, DT_COLL_ALLGATHER, sendbuf, recvbuf,
                       0, dtype, NO_OP, comm, stream),
                  counts, NULL, NULL, displs))

BOTH_FORMS(gather,
           (const void *sendbuf, void *recvbuf, size_t count, dt_dtype_t dtype,
            int root, dt_comm_t comm, dt_stream_t stream),
           rooted(make(DT_CALL_GATHER, DT_COLL_GATHER, sendbuf, recvbuf, count,
                       dtype, NO_OP, comm, stream),
                  root))

BOTH_FORMS(scatter,
           (const void *sendbuf, void *recvbuf, size_t count, dt_dtype_t dtype,
            int root, dt_comm_t comm, dt_stream_t stream),
           rooted(make(DT_CALL_SCATTER, DT_COLL_SCATTER, sendbuf, recvbuf,
                       count, dtype, NO_OP, comm, stream),
                  root))

BOTH_FORMS(alltoall,
           (const void *sendbuf, void *recvbuf, size_t count, dt_dtype_t dtype,
            dt_comm_t comm, dt_stream_t stream),
           make(DT_CALL_ALLTOALL, DT_COLL_ALLTOALL, sendbuf, recvbuf, count,
                dtype, NO_OP, comm, stream))

BOTH_FORMS(alltoallv,
           (const void *sendbuf, const size_t *sendcounts,
            const size_t *senddispls, void *recvbuf, const size_t *recvcounts,
            const size_t *recvdispls, dt_dtype_t dtype, dt_comm_t comm,
            dt_stream_t stream),
           uneven(make(DT_CALL_ALLTOALLV, DT_COLL_ALLTOALL, sendbuf, recvbuf, 0,
                       dtype, NO_OP, comm, stream),
                  sendcounts, senddispls, recvcounts, recvdispls))

BOTH_FORMS(send,
           (const void *buf, size_t count, dt_dtype_t dtype, int peer,
            dt_comm_t comm, dt_stream_t stream),
           rooted(make(DT_CALL_SEND, DT_COLL_SEND, buf, NULL, count, dtype,
                       NO_OP, comm, stream),
                  peer))

BOTH_FORMS(recv,
           (void *buf, size_t count, dt_dtype_t dtype, int peer, dt_comm_t comm,
            dt_stream_t stream),
           rooted(make(DT_CALL_RECV, DT_COLL_RECV, NULL, buf, count, dtype,
                       NO_OP, comm, stream),
                  peer))

/* ---- the barrier ---- */

/* An allreduce of one number, whose sum no rank can know before all ranks have
 * contributed theirs. */
static struct dt_call make_barrier(dt_comm_t comm, dt_stream_t stream)
{
    int32_t *token = comm ? comm->token : NULL;
    return make(DT_CALL_BARRIER, DT_COLL_ALLREDUCE, token,
                token ? token + 1 : NULL, 1, DT_DTYPE_I32, DT_OP_SUM, comm,
                stream);
}

BOTH_FORMS(barrier, (dt_comm_t comm, dt_stream_t stream),
           make_barrier(comm, stream))
