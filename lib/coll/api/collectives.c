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
static struct dt_call make_rooted(enum dt_call_kind kind, enum dt_coll coll,
                                  const void *sendbuf, void *recvbuf,
                                  size_t count, dt_dtype_t dtype, dt_op_t op,
                                  int root, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call =
        make(kind, coll, sendbuf, recvbuf, count, dtype, op, comm, stream);
    call.root = root;
    return call;
}

/* ---- with a reduction ---- */

dt_result_t dt_allreduce(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                         dt_stream_t stream)
{
    struct dt_call call = make(DT_CALL_ALLREDUCE, DT_COLL_ALLREDUCE, sendbuf,
                               recvbuf, count, dtype, op, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_iallreduce(const void *sendbuf, void *recvbuf, size_t count,
                          dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                          dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call = make(DT_CALL_ALLREDUCE, DT_COLL_ALLREDUCE, sendbuf,
                               recvbuf, count, dtype, op, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_allreduce_scaled(const void *sendbuf, void *recvbuf,
                                size_t count, dt_dtype_t dtype, dt_op_t op,
                                double prescale, double postscale,
                                dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call =
        make(DT_CALL_ALLREDUCE_SCALED, DT_COLL_ALLREDUCE, sendbuf, recvbuf,
             count, dtype, op, comm, stream);
    call.shape.prescale = prescale;
    call.shape.postscale = postscale;
    return dt_call_run(&call);
}

dt_result_t dt_iallreduce_scaled(const void *sendbuf, void *recvbuf,
                                 size_t count, dt_dtype_t dtype, dt_op_t op,
                                 double prescale, double postscale,
                                 dt_comm_t comm, dt_stream_t stream,
                                 dt_request_t *request)
{
    struct dt_call call =
        make(DT_CALL_ALLREDUCE_SCALED, DT_COLL_ALLREDUCE, sendbuf, recvbuf,
             count, dtype, op, comm, stream);
    call.shape.prescale = prescale;
    call.shape.postscale = postscale;
    return dt_call_start(&call, request);
}

dt_result_t dt_reduce(const void *sendbuf, void *recvbuf, size_t count,
                      dt_dtype_t dtype, dt_op_t op, int root, dt_comm_t comm,
                      dt_stream_t stream)
{
    struct dt_call call =
        make_rooted(DT_CALL_REDUCE, DT_COLL_REDUCE, sendbuf, recvbuf, count,
                    dtype, op, root, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ireduce(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, dt_op_t op, int root, dt_comm_t comm,
                       dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        make_rooted(DT_CALL_REDUCE, DT_COLL_REDUCE, sendbuf, recvbuf, count,
                    dtype, op, root, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_reduce_scatter(const void *sendbuf, void *recvbuf, size_t count,
                              dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                              dt_stream_t stream)
{
    struct dt_call call =
        make(DT_CALL_REDUCE_SCATTER, DT_COLL_REDUCE_SCATTER, sendbuf, recvbuf,
             count, dtype, op, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ireduce_scatter(const void *sendbuf, void *recvbuf, size_t count,
                               dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                               dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        make(DT_CALL_REDUCE_SCATTER, DT_COLL_REDUCE_SCATTER, sendbuf, recvbuf,
             count, dtype, op, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_reduce_scatterv(const void *sendbuf, void *recvbuf,
                               const size_t *counts, dt_dtype_t dtype,
                               dt_op_t op, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make(DT_CALL_REDUCE_SCATTERV, DT_COLL_REDUCE_SCATTER,
                               sendbuf, recvbuf, 0, dtype, op, comm, stream);
    call.shape.recvcounts = counts;
    return dt_call_run(&call);
}

dt_result_t dt_ireduce_scatterv(const void *sendbuf, void *recvbuf,
                                const size_t *counts, dt_dtype_t dtype,
                                dt_op_t op, dt_comm_t comm, dt_stream_t stream,
                                dt_request_t *request)
{
    struct dt_call call = make(DT_CALL_REDUCE_SCATTERV, DT_COLL_REDUCE_SCATTER,
                               sendbuf, recvbuf, 0, dtype, op, comm, stream);
    call.shape.recvcounts = counts;
    return dt_call_start(&call, request);
}

/* ---- without one ---- */

dt_result_t dt_bcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                     dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make_rooted(DT_CALL_BCAST, DT_COLL_BCAST, buf, buf,
                                      count, dtype, NO_OP, root, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ibcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                      dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call = make_rooted(DT_CALL_BCAST, DT_COLL_BCAST, buf, buf,
                                      count, dtype, NO_OP, root, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_allgather(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make(DT_CALL_ALLGATHER, DT_COLL_ALLGATHER, sendbuf,
                               recvbuf, count, dtype, NO_OP, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_iallgather(const void *sendbuf, void *recvbuf, size_t count,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                          dt_request_t *request)
{
    struct dt_call call = make(DT_CALL_ALLGATHER, DT_COLL_ALLGATHER, sendbuf,
                               recvbuf, count, dtype, NO_OP, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_allgatherv(const void *sendbuf, void *recvbuf,
                          const size_t *counts, const size_t *displs,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make(DT_CALL_ALLGATHERV, DT_COLL_ALLGATHER, sendbuf,
                               recvbuf, 0, dtype, NO_OP, comm, stream);
    call.shape.sendcounts = counts;
    call.shape.recvdispls = displs;
    return dt_call_run(&call);
}

dt_result_t dt_iallgatherv(const void *sendbuf, void *recvbuf,
                           const size_t *counts, const size_t *displs,
                           dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                           dt_request_t *request)
{
    struct dt_call call = make(DT_CALL_ALLGATHERV, DT_COLL_ALLGATHER, sendbuf,
                               recvbuf, 0, dtype, NO_OP, comm, stream);
    call.shape.sendcounts = counts;
    call.shape.recvdispls = displs;
    return dt_call_start(&call, request);
}

dt_result_t dt_gather(const void *sendbuf, void *recvbuf, size_t count,
                      dt_dtype_t dtype, int root, dt_comm_t comm,
                      dt_stream_t stream)
{
    struct dt_call call =
        make_rooted(DT_CALL_GATHER, DT_COLL_GATHER, sendbuf, recvbuf, count,
                    dtype, NO_OP, root, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_igather(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, int root, dt_comm_t comm,
                       dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        make_rooted(DT_CALL_GATHER, DT_COLL_GATHER, sendbuf, recvbuf, count,
                    dtype, NO_OP, root, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_scatter(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, int root, dt_comm_t comm,
                       dt_stream_t stream)
{
    struct dt_call call =
        make_rooted(DT_CALL_SCATTER, DT_COLL_SCATTER, sendbuf, recvbuf, count,
                    dtype, NO_OP, root, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_iscatter(const void *sendbuf, void *recvbuf, size_t count,
                        dt_dtype_t dtype, int root, dt_comm_t comm,
                        dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        make_rooted(DT_CALL_SCATTER, DT_COLL_SCATTER, sendbuf, recvbuf, count,
                    dtype, NO_OP, root, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_alltoall(const void *sendbuf, void *recvbuf, size_t count,
                        dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make(DT_CALL_ALLTOALL, DT_COLL_ALLTOALL, sendbuf,
                               recvbuf, count, dtype, NO_OP, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ialltoall(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                         dt_request_t *request)
{
    struct dt_call call = make(DT_CALL_ALLTOALL, DT_COLL_ALLTOALL, sendbuf,
                               recvbuf, count, dtype, NO_OP, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_alltoallv(const void *sendbuf, const size_t *sendcounts,
                         const size_t *senddispls, void *recvbuf,
                         const size_t *recvcounts, const size_t *recvdispls,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make(DT_CALL_ALLTOALLV, DT_COLL_ALLTOALL, sendbuf,
                               recvbuf, 0, dtype, NO_OP, comm, stream);
    call.shape.sendcounts = sendcounts;
    call.shape.senddispls = senddispls;
    call.shape.recvcounts = recvcounts;
    call.shape.recvdispls = recvdispls;
    return dt_call_run(&call);
}

dt_result_t dt_ialltoallv(const void *sendbuf, const size_t *sendcounts,
                          const size_t *senddispls, void *recvbuf,
                          const size_t *recvcounts, const size_t *recvdispls,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                          dt_request_t *request)
{
    struct dt_call call = make(DT_CALL_ALLTOALLV, DT_COLL_ALLTOALL, sendbuf,
                               recvbuf, 0, dtype, NO_OP, comm, stream);
    call.shape.sendcounts = sendcounts;
    call.shape.senddispls = senddispls;
    call.shape.recvcounts = recvcounts;
    call.shape.recvdispls = recvdispls;
    return dt_call_start(&call, request);
}

dt_result_t dt_send(const void *buf, size_t count, dt_dtype_t dtype, int peer,
                    dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make_rooted(DT_CALL_SEND, DT_COLL_SEND, buf, NULL,
                                      count, dtype, NO_OP, peer, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_isend(const void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call = make_rooted(DT_CALL_SEND, DT_COLL_SEND, buf, NULL,
                                      count, dtype, NO_OP, peer, comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_recv(void *buf, size_t count, dt_dtype_t dtype, int peer,
                    dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make_rooted(DT_CALL_RECV, DT_COLL_RECV, NULL, buf,
                                      count, dtype, NO_OP, peer, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_irecv(void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call = make_rooted(DT_CALL_RECV, DT_COLL_RECV, NULL, buf,
                                      count, dtype, NO_OP, peer, comm, stream);
    return dt_call_start(&call, request);
}

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

dt_result_t dt_barrier(dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = make_barrier(comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ibarrier(dt_comm_t comm, dt_stream_t stream,
                        dt_request_t *request)
{
    struct dt_call call = make_barrier(comm, stream);
    return dt_call_start(&call, request);
}
