/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* call.c - a call of the public API: is it valid, as far as one rank can tell,
 * and running it. check.c compares the ranks. */
#include "coll/api/call.h"

#include <math.h>

#include "base/api.h"
#include "coll/algorithm/algorithm.h"
#include "base/names.h"
#include "coll/api/check.h"
#include "coll/api/group.h"
#include "exec/exec.h"
#include "coll/engine/engine.h"

/* What each kind of call has. */
enum { OP = 1, ROOT = 2, PEER = 4, NO_TYPE = 8 };
static const struct {
    const char *name;
    unsigned has;
} kinds[DT_CALLS] = {
    [DT_CALL_ALLREDUCE] = {"dt_allreduce", OP},
    [DT_CALL_ALLREDUCE_SCALED] = {"dt_allreduce_scaled", OP},
    [DT_CALL_REDUCE] = {"dt_reduce", OP | ROOT},
    [DT_CALL_BCAST] = {"dt_bcast", ROOT},
    [DT_CALL_ALLGATHER] = {"dt_allgather", 0},
    [DT_CALL_ALLGATHERV] = {"dt_allgatherv", 0},
    [DT_CALL_REDUCE_SCATTER] = {"dt_reduce_scatter", OP},
    [DT_CALL_REDUCE_SCATTERV] = {"dt_reduce_scatterv", OP},
    [DT_CALL_ALLTOALL] = {"dt_alltoall", 0},
    [DT_CALL_ALLTOALLV] = {"dt_alltoallv", 0},
    [DT_CALL_GATHER] = {"dt_gather", ROOT},
    [DT_CALL_SCATTER] = {"dt_scatter", ROOT},
    [DT_CALL_BARRIER] = {"dt_barrier", NO_TYPE},
    [DT_CALL_SEND] = {"dt_send", PEER},
    [DT_CALL_RECV] = {"dt_recv", PEER},
    [DT_CALL_SPLIT] = {"dt_comm_split", NO_TYPE},
    [DT_CALL_DESTROY] = {"dt_comm_destroy", NO_TYPE},
    [DT_CALL_FINALIZE] = {"dt_finalize", NO_TYPE},
    [DT_CALL_CREATE] = {"dt_comm_create", NO_TYPE},
};

const char *dt_call_name(enum dt_call_kind kind)
{
    return (size_t)kind < DT_CALLS ? kinds[kind].name : "?";
}

bool dt_call_has_op(enum dt_call_kind kind)
{
    return (size_t)kind < DT_CALLS && kinds[kind].has & OP;
}

bool dt_call_has_type(enum dt_call_kind kind)
{
    return (size_t)kind < DT_CALLS && !(kinds[kind].has & NO_TYPE);
}

bool dt_call_has_root(enum dt_call_kind kind)
{
    return (size_t)kind < DT_CALLS && kinds[kind].has & ROOT;
}

/* What a call moves, in bytes. In place is sendbuf + send_at ==
 * recvbuf + recv_at. */
struct extent {
    bool sends, recvs; /* are the buffers looked at? */
    bool apart;        /* there is no in place */
    size_t send, recv;
    size_t send_at, recv_at;
};

static dt_result_t check_comm(const struct dt_call *call, struct dt_error *err)
{
    if (!call->comm)
        return dt_error_set(err, DT_ERR_NOT_INITIALIZED,
                            "%s: no communicator: call it between dt_init and "
                            "dt_finalize, on dt_comm_world() or what "
                            "dt_comm_split gave",
                            dt_call_name(call->kind));
    const struct dt_world *world = call->comm->world;
    if (call->stream && !world->device)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "%s: a stream, but %s: pass "
                            "DT_STREAM_NONE",
                            dt_call_name(call->kind), world->no_device.text);
    return DT_SUCCESS;
}

static dt_result_t check_scale(const struct dt_call *call, struct dt_error *err)
{
    const struct dt_shape *shape = &call->shape;
    if (!dt_exec_is_float(shape->dtype) ||
        (shape->op != DT_OP_SUM && shape->op != DT_OP_AVG))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: %s of %s cannot be scaled: expected sum or "
                            "avg of a floating-point type",
                            dt_call_name(call->kind), dt_name_op(shape->op),
                            dt_name_dtype(shape->dtype));
    if (!isfinite(shape->prescale) || !isfinite(shape->postscale))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: factors %g and %g: expected finite numbers",
                            dt_call_name(call->kind), shape->prescale,
                            shape->postscale);
    return DT_SUCCESS;
}

static dt_result_t check_type(const struct dt_call *call, struct dt_error *err)
{
    const struct dt_shape *shape = &call->shape;
    const char *name = dt_call_name(call->kind);
    if (!dt_name_dtype(shape->dtype))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: %d is no element type: expected a DT_DTYPE_*",
                            name, (int)shape->dtype);
    if (!dt_call_has_op(call->kind))
        return DT_SUCCESS;
    if (!dt_name_op(shape->op))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: %d is no reduction: expected a DT_OP_*", name,
                            (int)shape->op);
    if (!dt_exec_supports(shape->dtype, shape->op))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "%s: %s of %s is not supported", name,
                            dt_name_op(shape->op), dt_name_dtype(shape->dtype));
    if (call->kind == DT_CALL_ALLREDUCE_SCALED)
        return check_scale(call, err);
    return DT_SUCCESS;
}

static dt_result_t check_root(struct dt_call *call, struct dt_error *err)
{
    unsigned has = kinds[call->kind].has;
    const struct dt_comm *comm = call->comm;
    if (!(has & (ROOT | PEER)))
        return DT_SUCCESS;
    if (call->root < 0 || (size_t)call->root >= comm->size)
        return dt_error_set(
            err, DT_ERR_INVALID_ARG, "%s: %s %d: expected a rank from 0 to %zu",
            dt_call_name(call->kind), has & ROOT ? "root" : "peer", call->root,
            comm->size - 1);
    if (has & PEER && (size_t)call->root == comm->rank)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: peer %d is this rank itself: copy the memory "
                            "instead",
                            dt_call_name(call->kind), call->root);
    call->shape.root = (size_t)call->root;
    return DT_SUCCESS;
}

/* Does this rank read its send buffer, and write to its receive buffer? */
static void measure_ends(const struct dt_call *call, struct extent *extent)
{
    bool root = call->shape.root == call->comm->rank;
    extent->sends = extent->recvs = true;
    switch (call->kind) {
    case DT_CALL_REDUCE:
    case DT_CALL_GATHER:
        extent->recvs = root;
        break;
    case DT_CALL_SCATTER:
        extent->sends = root;
        break;
    case DT_CALL_SEND:
        extent->recvs = false;
        break;
    case DT_CALL_RECV:
        extent->sends = false;
        break;
    case DT_CALL_ALLTOALL:
    case DT_CALL_ALLTOALLV:
        extent->apart = true;
        break;
    default:
        break;
    }
}

/* The forms with one count. */
static dt_result_t measure_even(const struct dt_call *call,
                                struct extent *extent, struct dt_error *err)
{
    const struct dt_comm *comm = call->comm;
    size_t elem = dt_dtype_size(call->shape.dtype), block = 0, all = 0;
    size_t blocks = 1;
    bool many_sent = false, many_received = false;
    switch (call->kind) {
    case DT_CALL_ALLGATHER:
    case DT_CALL_GATHER:
        many_received = true;
        break;
    case DT_CALL_REDUCE_SCATTER:
    case DT_CALL_SCATTER:
        many_sent = true;
        break;
    case DT_CALL_ALLTOALL:
        many_sent = many_received = true;
        break;
    default:
        break;
    }
    if (many_sent || many_received)
        blocks = comm->size;
    if (__builtin_mul_overflow(call->shape.count, elem, &block) ||
        __builtin_mul_overflow(block, blocks, &all) || all > PTRDIFF_MAX)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: %zu times %zu elements of %s do not fit in "
                            "memory",
                            dt_call_name(call->kind), blocks, call->shape.count,
                            dt_name_dtype(call->shape.dtype));
    extent->send = many_sent ? all : block;
    extent->recv = many_received ? all : block;
    if (many_sent != many_received)
        *(many_sent ? &extent->send_at : &extent->recv_at) = comm->rank * block;
    return DT_SUCCESS;
}

static dt_result_t null_counts(const struct dt_call *call, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s: an array of counts or displacements is NULL: "
                        "expected one entry for each of the %zu ranks",
                        dt_call_name(call->kind), call->comm->size);
}

/* The forms with a count per rank. *total: elements, as far as this rank
 * knows. */
static dt_result_t measure_uneven(const struct dt_call *call,
                                  struct extent *extent, size_t *total,
                                  struct dt_error *err)
{
    const struct dt_shape *shape = &call->shape;
    size_t rank = call->comm->rank;
    size_t elem = dt_dtype_size(shape->dtype);
    struct dt_uneven send = {call->comm->size, elem, shape->sendcounts,
                             shape->senddispls};
    struct dt_uneven recv = {call->comm->size, elem, shape->recvcounts,
                             shape->recvdispls};
    const char *name = dt_call_name(call->kind);
    dt_result_t rc = DT_SUCCESS;
    switch (call->kind) {
    case DT_CALL_ALLGATHERV:
        recv.counts = send.counts; /* the same for all */
        if (!recv.counts || !recv.displs)
            return null_counts(call, err);
        rc = dt_uneven_check(&recv, name, "displs", &extent->recv, total, err);
        extent->send = rc == DT_SUCCESS ? recv.counts[rank] * elem : 0;
        extent->recv_at = recv.displs[rank] * elem;
        return rc;
    case DT_CALL_REDUCE_SCATTERV:
        if (!recv.counts)
            return null_counts(call, err);
        send.counts = recv.counts;
        rc = dt_uneven_check(&send, name, NULL, &extent->send, total, err);
        extent->recv = recv.counts[rank] * elem;
        for (size_t r = 0; rc == DT_SUCCESS && r < rank; r++)
            extent->send_at += recv.counts[r] * elem;
        return rc;
    default:
        break;
    }
    if (!send.counts || !send.displs || !recv.counts || !recv.displs)
        return null_counts(call, err);
    if (send.counts[rank] != recv.counts[rank])
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: this rank sends %zu elements to itself, but "
                            "expects %zu",
                            name, send.counts[rank], recv.counts[rank]);
    rc = dt_uneven_check(&send, name, NULL, &extent->send, total, err);
    if (rc == DT_SUCCESS)
        rc = dt_uneven_check(&recv, name, "recvdispls", &extent->recv, total,
                             err);
    return rc;
}

/* Do the buffers have memory in common? */
static bool overlap(const struct dt_call *call, const struct extent *extent)
{
    uintptr_t send = (uintptr_t)call->sendbuf, recv = (uintptr_t)call->recvbuf;
    const struct dt_shape *shape = &call->shape;
    size_t elem = dt_dtype_size(shape->dtype);
    if (!extent->send || !extent->recv || send >= recv + extent->recv ||
        recv >= send + extent->send)
        return false;
    /* sendbuf may lie between the blocks of an uneven form */
    const struct dt_uneven blocks = {call->comm->size, elem, shape->sendcounts,
                                     shape->recvdispls};
    if (call->kind == DT_CALL_ALLGATHERV)
        return dt_uneven_touch(&blocks, recv, send, extent->send);
    return true;
}

/* Whether in place, and if not, whether the buffers are apart. */
static dt_result_t check_buffers(struct dt_call *call,
                                 const struct extent *extent,
                                 struct dt_error *err)
{
    const char *name = dt_call_name(call->kind);
    if (!extent->sends)
        call->sendbuf = NULL;
    if (!extent->recvs)
        call->recvbuf = NULL;
    if (extent->sends && extent->send && !call->sendbuf)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "%s: %s is NULL", name,
                            call->kind == DT_CALL_BCAST ||
                                    call->kind == DT_CALL_SEND
                                ? "buf"
                                : "sendbuf");
    if (extent->recvs && extent->recv && !call->recvbuf)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "%s: %s is NULL", name,
                            call->kind == DT_CALL_RECV ? "buf" : "recvbuf");
    if (!extent->sends || !extent->recvs)
        return DT_SUCCESS;
    bool same = (uintptr_t)call->sendbuf + extent->send_at ==
                (uintptr_t)call->recvbuf + extent->recv_at;
    call->shape.in_place = same && !extent->apart;
    if (!call->shape.in_place && overlap(call, extent))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: sendbuf and recvbuf overlap%s: pass %smemory "
                            "apart",
                            name, extent->apart ? "" : ", but not as in place",
                            extent->apart ? "" : "them as dt.h says, or ");
    return DT_SUCCESS;
}

static bool uneven(enum dt_call_kind kind)
{
    return kind == DT_CALL_ALLGATHERV || kind == DT_CALL_REDUCE_SCATTERV ||
           kind == DT_CALL_ALLTOALLV;
}

/* Is it an allreduce that is obviously valid, as most are? The checks below
 * take as long as a short allreduce. */
static bool is_plain(struct dt_call *call)
{
    struct dt_shape *shape = &call->shape;
    uintptr_t send = (uintptr_t)call->sendbuf, recv = (uintptr_t)call->recvbuf;
    if (call->kind != DT_CALL_ALLREDUCE || !call->comm || call->stream ||
        call->comm->world->device || !send || !recv || !shape->count ||
        shape->count > PTRDIFF_MAX / 8 ||
        !dt_exec_supports(shape->dtype, shape->op))
        return false;
    size_t len = shape->count * dt_dtype_size(shape->dtype);
    shape->in_place = send == recv;
    return send == recv || (recv - send >= len && send - recv >= len);
}

dt_result_t dt_call_check(struct dt_call *call, bool *empty,
                          struct dt_error *err)
{
    *empty = false;
    if (is_plain(call))
        return DT_SUCCESS;
    struct extent extent = {0};
    dt_result_t rc = check_comm(call, err);
    if (rc == DT_SUCCESS)
        rc = check_type(call, err);
    if (rc == DT_SUCCESS)
        rc = check_root(call, err);
    if (rc != DT_SUCCESS)
        return rc;
    measure_ends(call, &extent);
    size_t total = call->shape.count;
    if (uneven(call->kind))
        rc = measure_uneven(call, &extent, &total, err);
    else
        rc = measure_even(call, &extent, err);
    /* other ranks may have elements for each other where this rank has none */
    *empty = total == 0 && call->kind != DT_CALL_ALLTOALLV;
    if (rc == DT_SUCCESS && !*empty)
        rc = check_buffers(call, &extent, err);
    call->send_len = extent.send;
    call->recv_len = extent.recv;
    return rc;
}

/* ---- running it ---- */

static const struct dt_device_ops *device_of(const struct dt_call *call)
{
    return call->comm->world->device->ops;
}

/* Whether the call is valid, and whether all ranks make the same. */
static dt_result_t check(struct dt_call *call, bool *empty,
                         struct dt_error *err)
{
    err->text[0] = '\0'; /* cheaper than to clear all of it */
    dt_result_t rc = dt_call_check(call, empty, err);
    if (rc == DT_SUCCESS && call->comm->world->device && !*empty)
        rc = device_of(call)->place(call, err);
    if (rc == DT_SUCCESS && call->comm->world->check)
        rc = dt_check(call, err);
    if (rc == DT_SUCCESS && *empty)
        rc = dt_comm_failure(call->comm, err);
    return rc;
}

static dt_result_t begin(const struct dt_call *call, dt_request_t *request,
                         struct dt_error *err)
{
    if (call->on_device)
        return device_of(call)->begin(call, request, err);
    return dt_comm_start(call->comm, &call->shape, call->sendbuf, call->recvbuf,
                         request, err);
}

dt_result_t dt_call_start(struct dt_call *call, dt_request_t *request)
{
    struct dt_error err;
    bool empty;
    if (!request && !call->stream) {
        dt_error_set(&err, DT_ERR_INVALID_ARG,
                     "the i-form of %s: request is NULL, which takes a stream",
                     dt_call_name(call->kind));
        return dt_api_return(DT_ERR_INVALID_ARG, &err);
    }
    dt_result_t rc = check(call, &empty, &err);
    dt_request_t started = NULL;
    if (rc == DT_SUCCESS && !empty)
        rc = begin(call, &started, &err);
    if (rc == DT_SUCCESS && started && call->on_device)
        rc = device_of(call)->follow(started, &err);
    if (rc != DT_SUCCESS) {
        if (started)
            device_of(call)->forget(started);
        return dt_api_return(rc, &err);
    }
    if (request)
        *request = started;
    else if (started)
        device_of(call)->forget(started);
    return DT_SUCCESS;
}

static dt_result_t begin_in_group(const struct dt_call *call,
                                  struct dt_error *err)
{
    struct dt_request *request;
    dt_result_t rc = begin(call, &request, err);
    if (rc == DT_SUCCESS)
        dt_group_add(request);
    return rc;
}

/* Run it to its end, or as far as the host takes part in it. */
static dt_result_t run(const struct dt_call *call, struct dt_error *err)
{
    struct dt_request *request;
    if (!call->on_device)
        return dt_comm_run(call->comm, &call->shape, call->sendbuf,
                           call->recvbuf, err);
    dt_result_t rc = device_of(call)->begin(call, &request, err);
    return rc == DT_SUCCESS ? device_of(call)->end(request, err) : rc;
}

dt_result_t dt_call_run(struct dt_call *call)
{
    struct dt_error err;
    bool empty;
    dt_result_t rc = check(call, &empty, &err);
    if (rc == DT_SUCCESS && !empty)
        rc = dt_group_is_open() ? begin_in_group(call, &err) : run(call, &err);
    return rc == DT_SUCCESS ? rc : dt_api_return(rc, &err);
}
