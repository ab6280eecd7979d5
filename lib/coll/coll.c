/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* coll.c - the public collectives: check the arguments, start, wait. */
#include "base/api.h"
#include "coll/comm.h"
#include "exec/exec.h"

/* One call of the public API. */
struct call {
    const char *name;
    dt_comm_t comm;
    dt_stream_t stream;
    struct dt_shape shape;
    const void *sendbuf;
    void *recvbuf;
    size_t sendbytes, recvbytes;
};

static dt_result_t check_comm(const struct call *call, struct dt_error *err)
{
    if (!call->comm)
        return dt_error_set(err, DT_ERR_NOT_INITIALIZED,
                            "%s: no communicator: call it between dt_init and "
                            "dt_finalize, on dt_comm_world()",
                            call->name);
    if (call->stream)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "%s: device streams are not supported yet: pass "
                            "DT_STREAM_NONE",
                            call->name);
    return DT_SUCCESS;
}

static dt_result_t check_type(const struct call *call, struct dt_error *err)
{
    const struct dt_shape *shape = &call->shape;
    if (!dt_exec_supports(shape->dtype, shape->op))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "%s: dtype %d with op %d: collectives take i32, "
                            "i64, bf16, f32, f64 and sum, min, max, avg",
                            call->name, (int)shape->dtype, (int)shape->op);
    if (shape->root >= call->comm->size)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: root %d: expected a rank from 0 to %zu",
                            call->name, (int)shape->root, call->comm->size - 1);
    return DT_SUCCESS;
}

/* Sets the sizes in bytes. */
static dt_result_t check_count(struct call *call, struct dt_error *err)
{
    size_t elem = dt_dtype_size(call->shape.dtype), blocks = 1;
    if (call->shape.coll == DT_COLL_ALLGATHER)
        blocks = call->comm->size;
    if (__builtin_mul_overflow(call->shape.count, elem, &call->sendbytes) ||
        __builtin_mul_overflow(call->sendbytes, blocks, &call->recvbytes) ||
        call->recvbytes > PTRDIFF_MAX)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: %zu elements do not fit in memory", call->name,
                            call->shape.count);
    return DT_SUCCESS;
}

/* Whether in place, and if not, whether the buffers are apart. */
static dt_result_t check_buffers(struct call *call, struct dt_error *err)
{
    if (!call->sendbuf || !call->recvbuf)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "%s: a buffer is NULL",
                            call->name);
    uintptr_t send = (uintptr_t)call->sendbuf, recv = (uintptr_t)call->recvbuf;
    uintptr_t place = recv;
    if (call->shape.coll == DT_COLL_ALLGATHER)
        place += call->comm->rank * call->sendbytes;
    call->shape.in_place = send == place;
    if (!call->shape.in_place && send < recv + call->recvbytes &&
        recv < send + call->sendbytes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: the buffers overlap in part: pass the same "
                            "memory, or memory apart",
                            call->name);
    return DT_SUCCESS;
}

static dt_result_t check(struct call *call, struct dt_error *err)
{
    dt_result_t rc = check_comm(call, err);
    if (rc == DT_SUCCESS)
        rc = dt_comm_failure(call->comm, err);
    if (rc == DT_SUCCESS)
        rc = check_type(call, err);
    if (rc == DT_SUCCESS)
        rc = check_count(call, err);
    if (rc == DT_SUCCESS && call->shape.count)
        rc = check_buffers(call, err);
    return rc;
}

static dt_result_t start(struct call *call, dt_request_t *request)
{
    struct dt_error err = {""};
    if (!request)
        return dt_api_return(dt_error_set(&err, DT_ERR_INVALID_ARG,
                                          "%s: request is NULL", call->name),
                             &err);
    dt_request_t started = NULL;
    dt_result_t rc = check(call, &err);
    if (rc == DT_SUCCESS && call->shape.count)
        rc = dt_comm_start(call->comm, &call->shape, call->sendbuf,
                           call->recvbuf, &started, &err);
    if (rc == DT_SUCCESS)
        *request = started;
    return dt_api_return(rc, &err);
}

static dt_result_t run(struct call *call)
{
    dt_request_t request = NULL;
    dt_result_t rc = start(call, &request);
    return rc == DT_SUCCESS ? dt_wait(&request) : rc;
}

static struct call allreduce_call(const void *sendbuf, void *recvbuf,
                                  size_t count, dt_dtype_t dtype, dt_op_t op,
                                  dt_comm_t comm, dt_stream_t stream)
{
    return (struct call){
        .name = "dt_allreduce",
        .comm = comm,
        .stream = stream,
        .shape = {.coll = DT_COLL_ALLREDUCE,
                  .dtype = dtype,
                  .op = op,
                  .count = count},
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
    };
}

static struct call bcast_call(void *buf, size_t count, dt_dtype_t dtype,
                              int root, dt_comm_t comm, dt_stream_t stream)
{
    return (struct call){
        .name = "dt_bcast",
        .comm = comm,
        .stream = stream,
        .shape = {.coll = DT_COLL_BCAST,
                  .dtype = dtype,
                  .count = count,
                  .root = (size_t)root},
        .sendbuf = buf,
        .recvbuf = buf,
    };
}

static struct call allgather_call(const void *sendbuf, void *recvbuf,
                                  size_t count, dt_dtype_t dtype,
                                  dt_comm_t comm, dt_stream_t stream)
{
    return (struct call){
        .name = "dt_allgather",
        .comm = comm,
        .stream = stream,
        .shape = {.coll = DT_COLL_ALLGATHER, .dtype = dtype, .count = count},
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
    };
}

/* Nobody knows the sum of one number per rank before all have given theirs. */
static struct call barrier_call(dt_comm_t comm, dt_stream_t stream)
{
    struct call call = {
        .name = "dt_barrier",
        .comm = comm,
        .stream = stream,
        .shape = {.coll = DT_COLL_ALLREDUCE, .dtype = DT_DTYPE_I32, .count = 1},
    };
    if (comm) {
        call.sendbuf = &comm->token[0];
        call.recvbuf = &comm->token[1];
    }
    return call;
}

dt_result_t dt_allreduce(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                         dt_stream_t stream)
{
    struct call call =
        allreduce_call(sendbuf, recvbuf, count, dtype, op, comm, stream);
    return run(&call);
}

dt_result_t dt_iallreduce(const void *sendbuf, void *recvbuf, size_t count,
                          dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                          dt_stream_t stream, dt_request_t *request)
{
    struct call call =
        allreduce_call(sendbuf, recvbuf, count, dtype, op, comm, stream);
    return start(&call, request);
}

dt_result_t dt_bcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                     dt_comm_t comm, dt_stream_t stream)
{
    struct call call = bcast_call(buf, count, dtype, root, comm, stream);
    return run(&call);
}

dt_result_t dt_ibcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                      dt_comm_t comm, dt_stream_t stream, dt_request_t *request)
{
    struct call call = bcast_call(buf, count, dtype, root, comm, stream);
    return start(&call, request);
}

dt_result_t dt_allgather(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    struct call call =
        allgather_call(sendbuf, recvbuf, count, dtype, comm, stream);
    return run(&call);
}

dt_result_t dt_iallgather(const void *sendbuf, void *recvbuf, size_t count,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                          dt_request_t *request)
{
    struct call call =
        allgather_call(sendbuf, recvbuf, count, dtype, comm, stream);
    return start(&call, request);
}

dt_result_t dt_barrier(dt_comm_t comm, dt_stream_t stream)
{
    struct call call = barrier_call(comm, stream);
    return run(&call);
}

dt_result_t dt_ibarrier(dt_comm_t comm, dt_stream_t stream,
                        dt_request_t *request)
{
    struct call call = barrier_call(comm, stream);
    return start(&call, request);
}

typedef dt_result_t complete_fn(struct dt_comm *, struct dt_request *,
                                struct dt_error *);

static dt_result_t complete(complete_fn *fn, dt_request_t *request)
{
    struct dt_error err = {""};
    if (!request || !*request)
        return DT_SUCCESS;
    dt_result_t rc = fn((*request)->comm, *request, &err);
    if (rc != DT_IN_PROGRESS)
        *request = NULL;
    return dt_api_return(rc, &err);
}

dt_result_t dt_wait(dt_request_t *request)
{
    return complete(dt_comm_wait, request);
}

dt_result_t dt_test(dt_request_t *request)
{
    return complete(dt_comm_test, request);
}
