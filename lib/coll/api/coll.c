/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* coll.c - the public collectives that reduce, and the barrier. */
#include "coll/api/call.h"

static struct dt_call allreduce_call(const void *sendbuf, void *recvbuf,
                                     size_t count, dt_dtype_t dtype, dt_op_t op,
                                     dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_ALLREDUCE,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_ALLREDUCE,
                  .dtype = dtype,
                  .op = op,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_allreduce(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                         dt_stream_t stream)
{
    struct dt_call call =
        allreduce_call(sendbuf, recvbuf, count, dtype, op, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_iallreduce(const void *sendbuf, void *recvbuf, size_t count,
                          dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                          dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        allreduce_call(sendbuf, recvbuf, count, dtype, op, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call allreduce_scaled_call(const void *sendbuf, void *recvbuf,
                                            size_t count, dt_dtype_t dtype,
                                            dt_op_t op, double prescale,
                                            double postscale, dt_comm_t comm,
                                            dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_ALLREDUCE_SCALED,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_ALLREDUCE,
                  .dtype = dtype,
                  .op = op,
                  .count = count,
                  .prescale = prescale,
                  .postscale = postscale},
    };
}

dt_result_t dt_allreduce_scaled(const void *sendbuf, void *recvbuf,
                                size_t count, dt_dtype_t dtype, dt_op_t op,
                                double prescale, double postscale,
                                dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = allreduce_scaled_call(
        sendbuf, recvbuf, count, dtype, op, prescale, postscale, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_iallreduce_scaled(const void *sendbuf, void *recvbuf,
                                 size_t count, dt_dtype_t dtype, dt_op_t op,
                                 double prescale, double postscale,
                                 dt_comm_t comm, dt_stream_t stream,
                                 dt_request_t *request)
{
    struct dt_call call = allreduce_scaled_call(
        sendbuf, recvbuf, count, dtype, op, prescale, postscale, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call reduce_call(const void *sendbuf, void *recvbuf,
                                  size_t count, dt_dtype_t dtype, dt_op_t op,
                                  int root, dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_REDUCE,
        .root = root,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_REDUCE,
                  .dtype = dtype,
                  .op = op,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_reduce(const void *sendbuf, void *recvbuf, size_t count,
                      dt_dtype_t dtype, dt_op_t op, int root, dt_comm_t comm,
                      dt_stream_t stream)
{
    struct dt_call call =
        reduce_call(sendbuf, recvbuf, count, dtype, op, root, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ireduce(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, dt_op_t op, int root, dt_comm_t comm,
                       dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        reduce_call(sendbuf, recvbuf, count, dtype, op, root, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call reduce_scatter_call(const void *sendbuf, void *recvbuf,
                                          size_t count, dt_dtype_t dtype,
                                          dt_op_t op, dt_comm_t comm,
                                          dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_REDUCE_SCATTER,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_REDUCE_SCATTER,
                  .dtype = dtype,
                  .op = op,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_reduce_scatter(const void *sendbuf, void *recvbuf, size_t count,
                              dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                              dt_stream_t stream)
{
    struct dt_call call =
        reduce_scatter_call(sendbuf, recvbuf, count, dtype, op, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ireduce_scatter(const void *sendbuf, void *recvbuf, size_t count,
                               dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                               dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        reduce_scatter_call(sendbuf, recvbuf, count, dtype, op, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call reduce_scatterv_call(const void *sendbuf, void *recvbuf,
                                           const size_t *counts,
                                           dt_dtype_t dtype, dt_op_t op,
                                           dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_REDUCE_SCATTERV,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_REDUCE_SCATTER,
                  .dtype = dtype,
                  .op = op,
                  .recvcounts = counts,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_reduce_scatterv(const void *sendbuf, void *recvbuf,
                               const size_t *counts, dt_dtype_t dtype,
                               dt_op_t op, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call =
        reduce_scatterv_call(sendbuf, recvbuf, counts, dtype, op, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ireduce_scatterv(const void *sendbuf, void *recvbuf,
                                const size_t *counts, dt_dtype_t dtype,
                                dt_op_t op, dt_comm_t comm, dt_stream_t stream,
                                dt_request_t *request)
{
    struct dt_call call =
        reduce_scatterv_call(sendbuf, recvbuf, counts, dtype, op, comm, stream);
    return dt_call_start(&call, request);
}

/* Nobody knows the sum of one number per rank before all have given theirs. */
static struct dt_call barrier_call(dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call =
        allreduce_call(NULL, NULL, 1, DT_DTYPE_I32, DT_OP_SUM, comm, stream);
    call.kind = DT_CALL_BARRIER;
    if (comm) {
        call.sendbuf = &comm->token[0];
        call.recvbuf = &comm->token[1];
    }
    return call;
}

dt_result_t dt_barrier(dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = barrier_call(comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ibarrier(dt_comm_t comm, dt_stream_t stream,
                        dt_request_t *request)
{
    struct dt_call call = barrier_call(comm, stream);
    return dt_call_start(&call, request);
}

dt_result_t dt_call_barrier(struct dt_comm *comm, struct dt_error *err)
{
    struct dt_call call = barrier_call(comm, DT_STREAM_NONE);
    return dt_comm_run(comm, &call.shape, call.sendbuf, call.recvbuf, err);
}
