/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* call.c - which calls are for the GPU, and which of its ways each goes. */
#include <stdio.h>

#include "gpu/coll/comm.h"
#include "gpu/gpu.h"

/* ---- where the buffers are ---- */

/* One of a call; kind is HOST where nobody looks at it. */
struct spot {
    const char *name;
    const void *ptr;
    size_t len;
    bool used;
    struct dt_gpu_place place;
};

static dt_result_t locate(const struct dt_call *call, struct spot *spot,
                          struct dt_error *err)
{
    struct dt_gpu *gpu = call->comm->world->device->gpu;
    struct dt_error why = {""};
    spot->used = spot->ptr && spot->len;
    if (!spot->used)
        return DT_SUCCESS;
    dt_result_t rc =
        gpu->ops->locate(gpu, spot->ptr, spot->len, &spot->place, &why);
    if (rc == DT_SUCCESS && spot->place.kind == DT_GPU_MEMORY &&
        (uintptr_t)spot->ptr % dt_dtype_size(call->shape.dtype))
        rc = dt_error_set(&why, DT_ERR_INVALID_ARG,
                          "not aligned to elements of %zu bytes",
                          dt_dtype_size(call->shape.dtype));
    if (rc == DT_SUCCESS)
        return rc;
    return dt_error_set(err, rc, "%s: %s, %zu bytes at %p: %s",
                        dt_call_name(call->kind), spot->name, spot->len,
                        spot->ptr, why.text);
}

static void describe(const struct spot *spot, char *text, size_t room)
{
    if (spot->place.kind == DT_GPU_MEMORY)
        snprintf(text, room, "on GPU %d", spot->place.device);
    else
        snprintf(text, room, "%s",
                 spot->place.kind == DT_GPU_PINNED    ? "in pinned host memory"
                 : spot->place.kind == DT_GPU_MANAGED ? "in managed memory"
                                                      : "in host memory");
}

/* With a stream, all has to be on its GPU. */
static dt_result_t check_spot(const struct dt_call *call,
                              const struct spot *spot, struct dt_error *err)
{
    char where[64];
    describe(spot, where, sizeof(where));
    if (!spot->used || spot->place.kind == DT_GPU_MANAGED ||
        (spot->place.kind == DT_GPU_MEMORY &&
         spot->place.device == call->device))
        return DT_SUCCESS;
    if (spot->place.kind == DT_GPU_MEMORY)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: %s is %s, but the stream on GPU %d: pass a "
                            "stream of the buffers' GPU",
                            dt_call_name(call->kind), spot->name, where,
                            call->device);
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s: %s is %s (or was freed), but there is a stream: "
                        "pass memory of GPU %d, or DT_STREAM_NONE",
                        dt_call_name(call->kind), spot->name, where,
                        call->device);
}

/* Without a stream, managed memory is as good as that of the host. */
static dt_result_t agree(struct dt_call *call, const struct spot *a,
                         const struct spot *b, struct dt_error *err)
{
    char here[64], there[64];
    bool gpu = a->used && a->place.kind == DT_GPU_MEMORY;
    call->on_device = gpu || (b->used && b->place.kind == DT_GPU_MEMORY);
    call->device = gpu ? a->place.device : b->place.device;
    if (!call->on_device || !a->used || !b->used)
        return DT_SUCCESS;
    const struct spot *other = gpu ? b : a;
    if (other->place.kind == DT_GPU_MANAGED ||
        (other->place.kind == DT_GPU_MEMORY &&
         other->place.device == call->device))
        return DT_SUCCESS;
    describe(a, here, sizeof(here));
    describe(b, there, sizeof(there));
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s: %s is %s, but %s %s: pass both on one GPU, or "
                        "both on the host",
                        dt_call_name(call->kind), a->name, here, b->name,
                        there);
}

static dt_result_t place(struct dt_call *call, struct dt_error *err)
{
    struct dt_gpu *gpu = call->comm->world->device->gpu;
    bool one = call->kind == DT_CALL_BCAST || call->kind == DT_CALL_SEND ||
               call->kind == DT_CALL_RECV;
    struct spot send = {one ? "buf" : "sendbuf", call->sendbuf, call->send_len,
                        .used = false};
    struct spot recv = {one ? "buf" : "recvbuf", call->recvbuf, call->recv_len,
                        .used = false};
    dt_result_t rc = DT_SUCCESS;
    if (call->stream)
        rc = gpu->ops->stream_device(gpu, call->stream, &call->device,
                                     &call->capturing, err);
    if (call->kind == DT_CALL_BARRIER) { /* its buffers are its own */
        call->on_device = call->stream != DT_STREAM_NONE;
        return rc;
    }
    if (rc == DT_SUCCESS)
        rc = locate(call, &send, err);
    if (rc == DT_SUCCESS)
        rc = locate(call, &recv, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!call->stream)
        return agree(call, &send, &recv, err);
    call->on_device = true;
    rc = check_spot(call, &send, err);
    return rc == DT_SUCCESS ? check_spot(call, &recv, err) : rc;
}

/* What is half on the streams cannot be taken back, and a GPU that is broken
 * will not get better: the others are told. */
static dt_result_t fail(struct dt_world *world, dt_result_t why,
                        struct dt_error *err)
{
    dt_world_lock(world);
    dt_world_fail(world, why, err);
    dt_gpu_step(world);
    *err = world->failure_text;
    dt_world_unlock(world);
    return world->failure;
}

dt_result_t dt_gpu_place(struct dt_call *call, struct dt_error *err)
{
    dt_result_t rc = place(call, err);
    return rc == DT_ERR_SYSTEM ? fail(call->comm->world, rc, err) : rc;
}

/* ---- its way ---- */

static bool is_p2p(const struct dt_call *call)
{
    return call->kind == DT_CALL_SEND || call->kind == DT_CALL_RECV;
}

static dt_result_t by_nccl(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                           const struct dt_call *call, struct dt_error *err)
{
    bool barrier = call->kind == DT_CALL_BARRIER;
    work->by_nccl = true;
    dt_result_t rc = dt_gpu_nccl_start(
        gpu->nccl, &work->base.shape, barrier ? NULL : call->sendbuf,
        barrier ? NULL : call->recvbuf, call->stream, &work->ticket, err);
    return rc == DT_SUCCESS ? dt_gpu_append_exchange(work, err) : rc;
}

static dt_result_t by_node(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                           const struct dt_call *call, struct dt_error *err)
{
    bool barrier = call->kind == DT_CALL_BARRIER;
    dt_result_t rc = dt_gpu_node_start(
        gpu->node, &work->base.shape, barrier ? NULL : call->sendbuf,
        barrier ? NULL : call->recvbuf, call->stream, &work->ticket, err);
    if (rc != DT_SUCCESS || !call->capturing)
        return rc == DT_SUCCESS ? dt_gpu_append_exchange(work, err) : rc;
    dt_gpu_skip(work);
    return DT_SUCCESS;
}

static dt_result_t put(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                       const struct dt_call *call, struct dt_error *err)
{
    if (gpu->comm->size == 1)
        return dt_gpu_solo(gpu, work, call, err);
    switch (dt_gpu_route_of(gpu, call)) {
    case DT_GPU_BY_NCCL:
        return by_nccl(gpu, work, call, err);
    case DT_GPU_BY_NODE:
        return by_node(gpu, work, call, err);
    case DT_GPU_STAGED:
        break;
    }
    return dt_gpu_stage(gpu, work, call, err);
}

static dt_result_t give_up(struct dt_gpu_work *work, dt_result_t rc,
                           struct dt_error *err)
{
    struct dt_world *world = work->base.comm->world;
    if (work->chunks || work->by_nccl || rc == DT_ERR_SYSTEM)
        rc = fail(world, rc, err);
    if (work->chunks)
        dt_gpu_forget(&work->base);
    else
        dt_gpu_work_free(work);
    return rc;
}

static dt_result_t prepare(const struct dt_call *call, struct dt_gpu_comm **gpu,
                           struct dt_error *err)
{
    dt_result_t rc = dt_comm_failure(call->comm, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpu_join(call->comm, call->device, gpu, err);
    if (rc != DT_SUCCESS || is_p2p(call))
        return rc;
    if (!(*gpu)->connected && call->capturing)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "%s: the first call of a communicator cannot be "
                            "captured into a graph: make one before",
                            dt_call_name(call->kind));
    return dt_gpu_connect(*gpu, err);
}

dt_result_t dt_gpu_begin(const struct dt_call *call,
                         struct dt_request **request, struct dt_error *err)
{
    struct dt_gpu_comm *gpu;
    struct dt_gpu_work *work;
    dt_result_t rc = prepare(call, &gpu, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpu_work_create(call, &work, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = put(gpu, work, call, err);
    if (rc != DT_SUCCESS)
        return give_up(work, rc, err);
    *request = &work->base;
    return DT_SUCCESS;
}

dt_result_t dt_gpu_follow(struct dt_request *request, struct dt_error *err)
{
    const struct dt_gpu_work *work = dt_gpu_work_of(request);
    struct dt_world *world = request->comm->world;
    struct dt_gpu_lane *lane = work->lane;
    if (!lane || !work->stream)
        return DT_SUCCESS;
    struct dt_gpu *gpu = lane->gpu->gpu;
    dt_result_t rc =
        gpu->ops->order(gpu, lane->gpu->device, lane->in, work->stream, err);
    return rc == DT_SUCCESS ? rc : fail(world, rc, err);
}

dt_result_t dt_gpu_end(struct dt_request *request, struct dt_error *err)
{
    if (!dt_gpu_work_of(request)->stream)
        return dt_gpu_wait(request, err);
    dt_result_t rc = dt_gpu_follow(request, err);
    dt_gpu_forget(request);
    return rc;
}
