/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* move.c - the public collectives that only move, send and receive. */
#include "coll/api/call.h"

static struct dt_call bcast_call(void *buf, size_t count, dt_dtype_t dtype,
                                 int root, dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_BCAST,
        .root = root,
        .comm = comm,
        .stream = stream,
        .sendbuf = buf,
        .recvbuf = buf,
        .shape = {.coll = DT_COLL_BCAST,
                  .dtype = dtype,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_bcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                     dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = bcast_call(buf, count, dtype, root, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ibcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                      dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call = bcast_call(buf, count, dtype, root, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call allgather_call(const void *sendbuf, void *recvbuf,
                                     size_t count, dt_dtype_t dtype,
                                     dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_ALLGATHER,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_ALLGATHER,
                  .dtype = dtype,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_allgather(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call =
        allgather_call(sendbuf, recvbuf, count, dtype, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_iallgather(const void *sendbuf, void *recvbuf, size_t count,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                          dt_request_t *request)
{
    struct dt_call call =
        allgather_call(sendbuf, recvbuf, count, dtype, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call allgatherv_call(const void *sendbuf, void *recvbuf,
                                      const size_t *counts,
                                      const size_t *displs, dt_dtype_t dtype,
                                      dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_ALLGATHERV,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_ALLGATHER,
                  .dtype = dtype,
                  .sendcounts = counts,
                  .recvdispls = displs,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_allgatherv(const void *sendbuf, void *recvbuf,
                          const size_t *counts, const size_t *displs,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call =
        allgatherv_call(sendbuf, recvbuf, counts, displs, dtype, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_iallgatherv(const void *sendbuf, void *recvbuf,
                           const size_t *counts, const size_t *displs,
                           dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                           dt_request_t *request)
{
    struct dt_call call =
        allgatherv_call(sendbuf, recvbuf, counts, displs, dtype, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call alltoall_call(const void *sendbuf, void *recvbuf,
                                    size_t count, dt_dtype_t dtype,
                                    dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_ALLTOALL,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_ALLTOALL,
                  .dtype = dtype,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_alltoall(const void *sendbuf, void *recvbuf, size_t count,
                        dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call =
        alltoall_call(sendbuf, recvbuf, count, dtype, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ialltoall(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                         dt_request_t *request)
{
    struct dt_call call =
        alltoall_call(sendbuf, recvbuf, count, dtype, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call alltoallv_call(const void *sendbuf,
                                     const size_t *sendcounts,
                                     const size_t *senddispls, void *recvbuf,
                                     const size_t *recvcounts,
                                     const size_t *recvdispls, dt_dtype_t dtype,
                                     dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_ALLTOALLV,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_ALLTOALL,
                  .dtype = dtype,
                  .sendcounts = sendcounts,
                  .senddispls = senddispls,
                  .recvcounts = recvcounts,
                  .recvdispls = recvdispls,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_alltoallv(const void *sendbuf, const size_t *sendcounts,
                         const size_t *senddispls, void *recvbuf,
                         const size_t *recvcounts, const size_t *recvdispls,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call =
        alltoallv_call(sendbuf, sendcounts, senddispls, recvbuf, recvcounts,
                       recvdispls, dtype, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_ialltoallv(const void *sendbuf, const size_t *sendcounts,
                          const size_t *senddispls, void *recvbuf,
                          const size_t *recvcounts, const size_t *recvdispls,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                          dt_request_t *request)
{
    struct dt_call call =
        alltoallv_call(sendbuf, sendcounts, senddispls, recvbuf, recvcounts,
                       recvdispls, dtype, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call gather_call(const void *sendbuf, void *recvbuf,
                                  size_t count, dt_dtype_t dtype, int root,
                                  dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_GATHER,
        .root = root,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_GATHER,
                  .dtype = dtype,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_gather(const void *sendbuf, void *recvbuf, size_t count,
                      dt_dtype_t dtype, int root, dt_comm_t comm,
                      dt_stream_t stream)
{
    struct dt_call call =
        gather_call(sendbuf, recvbuf, count, dtype, root, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_igather(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, int root, dt_comm_t comm,
                       dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        gather_call(sendbuf, recvbuf, count, dtype, root, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call scatter_call(const void *sendbuf, void *recvbuf,
                                   size_t count, dt_dtype_t dtype, int root,
                                   dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_SCATTER,
        .root = root,
        .comm = comm,
        .stream = stream,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .shape = {.coll = DT_COLL_SCATTER,
                  .dtype = dtype,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_scatter(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, int root, dt_comm_t comm,
                       dt_stream_t stream)
{
    struct dt_call call =
        scatter_call(sendbuf, recvbuf, count, dtype, root, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_iscatter(const void *sendbuf, void *recvbuf, size_t count,
                        dt_dtype_t dtype, int root, dt_comm_t comm,
                        dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call =
        scatter_call(sendbuf, recvbuf, count, dtype, root, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call send_call(const void *buf, size_t count, dt_dtype_t dtype,
                                int peer, dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_SEND,
        .root = peer,
        .comm = comm,
        .stream = stream,
        .sendbuf = buf,
        .shape = {.coll = DT_COLL_SEND,
                  .dtype = dtype,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_send(const void *buf, size_t count, dt_dtype_t dtype, int peer,
                    dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = send_call(buf, count, dtype, peer, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_isend(const void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call = send_call(buf, count, dtype, peer, comm, stream);
    return dt_call_start(&call, request);
}

static struct dt_call recv_call(void *buf, size_t count, dt_dtype_t dtype,
                                int peer, dt_comm_t comm, dt_stream_t stream)
{
    return (struct dt_call){
        .kind = DT_CALL_RECV,
        .root = peer,
        .comm = comm,
        .stream = stream,
        .recvbuf = buf,
        .shape = {.coll = DT_COLL_RECV,
                  .dtype = dtype,
                  .count = count,
                  .prescale = 1,
                  .postscale = 1},
    };
}

dt_result_t dt_recv(void *buf, size_t count, dt_dtype_t dtype, int peer,
                    dt_comm_t comm, dt_stream_t stream)
{
    struct dt_call call = recv_call(buf, count, dtype, peer, comm, stream);
    return dt_call_run(&call);
}

dt_result_t dt_irecv(void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    struct dt_call call = recv_call(buf, count, dtype, peer, comm, stream);
    return dt_call_start(&call, request);
}
