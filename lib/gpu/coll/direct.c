/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* direct.c - a work that is handed to the network where it is: messages in
 * memory of the GPU, without a copy on the host.
 *
 * So go, where both ends can (takes_gpu in tl.h), dt_send and dt_recv; and, in
 * a communicator whose ranks can all do it with each other, which are then each
 * alone on their nodes, what moves without arithmetic: bcast, allgather(v),
 * alltoall(v), gather and scatter. Each rank sends the others their rows, and
 * copies its own, by the driver. A bcast of some length to more than one rank
 * is cut into a row for each; the root sends each its row, then each sends its
 * own to the others.
 *
 * All else is staged: reductions and barriers, messages inside a node, and the
 * collectives of communicators with two ranks on a node, as what goes between
 * those goes through memory of the host.
 *
 * UCX is called with the context of one GPU current: a process that uses
 * several at once needs a UCX that finds each buffer's by itself. */
#include "coll/algorithm/algorithm.h"
#include "gpu/coll/comm.h"

/* A bcast of so many bytes is cut into rows. */
#define BCAST_ROWS ((size_t)256 << 10)

/* ---- who can ---- */

bool dt_gpu_direct_to(const struct dt_gpu_comm *gpu, size_t peer)
{
    const struct dt_comm *comm = gpu->comm;
    if (peer == comm->rank)
        return false;
    struct dt_tl *tl = dt_world_route(comm->world, comm->members[peer]);
    return tl->ops->takes_gpu && tl->ops->takes_gpu(tl, comm->members[peer]);
}

bool dt_gpu_direct_all(const struct dt_gpu_comm *gpu)
{
    for (size_t r = 0; r < gpu->comm->size; r++)
        if (r != gpu->comm->rank && !dt_gpu_direct_to(gpu, r))
            return false;
    return true;
}

bool dt_gpu_direct_serves(const struct dt_gpu_lane *lane,
                          const struct dt_shape *shape)
{
    switch (shape->coll) {
    case DT_COLL_SEND:
    case DT_COLL_RECV:
        return lane->direct;
    case DT_COLL_BCAST:
    case DT_COLL_ALLGATHER:
    case DT_COLL_ALLTOALL:
    case DT_COLL_GATHER:
    case DT_COLL_SCATTER:
        return lane->gpu->direct;
    default:
        return false;
    }
}

/* ---- rows ---- */

/* The part of a row that goes in a chunk. */
struct piece {
    char *buf;
    size_t len; /* 0: nothing goes */
};

/* In the second half of a bcast each has its row, and the root all. */
static bool goes(const struct dt_gpu_work *work, size_t sender, size_t receiver,
                 bool second)
{
    const size_t root = work->base.shape.root;
    switch (work->base.shape.coll) {
    case DT_COLL_GATHER:
    case DT_COLL_SEND:
        return receiver == root;
    case DT_COLL_BCAST:
        return second ? receiver != root : sender == root;
    case DT_COLL_SCATTER:
    case DT_COLL_RECV:
        return sender == root;
    default:
        return true;
    }
}

static size_t length(const struct dt_gpu_work *work,
                     const struct dt_gpu_side *side, size_t row)
{
    const size_t count = work->base.shape.count;
    const size_t elem = dt_dtype_size(work->base.shape.dtype);
    if (side->counts)
        return side->counts[row];
    return work->half ? dt_gpu_clip(count, row * (side->pitch / elem),
                                    side->pitch / elem)
                      : count;
}

/* What goes between me and a peer, which may be me. */
static struct piece piece_of(const struct dt_gpu_work *work, bool out,
                             size_t peer, uint32_t number)
{
    const struct dt_gpu_side *side = out ? &work->out : &work->in;
    const size_t elem = dt_dtype_size(work->base.shape.dtype);
    const size_t me = work->base.comm->rank;
    const size_t sender = out ? me : peer, receiver = out ? peer : me;
    const struct piece none = {NULL, 0};
    size_t chunk = number - work->first, row = side->rows == 1 ? 0 : peer;
    bool second = work->half && chunk >= work->half;
    if (work->half)
        row = second ? sender : receiver;
    if (second)
        chunk -= work->half;
    if (row >= side->rows || !goes(work, sender, receiver, second))
        return none;
    size_t first = chunk * work->columns;
    size_t count = dt_gpu_clip(length(work, side, row), first, work->columns);
    size_t at = side->counts ? side->displs[row] * elem : row * side->pitch;
    return count ? (struct piece){side->buf + at + first * elem, count * elem}
                 : none;
}

/* ---- the caller's part ---- */

static dt_result_t find(const struct dt_gpu_comm *gpu, struct dt_gpu_side *side,
                        struct dt_error *err)
{
    struct dt_gpu_place place = {.kind = DT_GPU_MEMORY};
    dt_result_t rc = DT_SUCCESS;
    if (side->rows && side->buf)
        rc = gpu->gpu->ops->locate(gpu->gpu, side->buf, 1, &place, err);
    side->memory = place.kind == DT_GPU_MANAGED ? DT_TL_MANAGED : DT_TL_GPU;
    return rc;
}

/* A bcast: the buffer, with a row for each rank, at both sides. Elements of a
 * row; the last ones may have fewer. */
static size_t make_rows(struct dt_gpu_work *work)
{
    const struct dt_shape *shape = &work->base.shape;
    const size_t count = dt_ceiling(shape->count, work->base.comm->size);
    struct dt_gpu_side *have = work->out.rows ? &work->out : &work->in;
    have->rows = work->base.comm->size;
    have->pitch = count * dt_dtype_size(shape->dtype);
    work->out = work->in = *have;
    return count;
}

static size_t longest(const struct dt_gpu_work *work,
                      const struct dt_gpu_side *side)
{
    size_t count = 0;
    for (size_t r = 0; r < side->rows; r++)
        count = dt_at_least(count, length(work, side, r));
    return count;
}

dt_result_t dt_gpu_direct_open(const struct dt_gpu_comm *gpu,
                               struct dt_gpu_work *work, uint32_t *chunks,
                               struct dt_error *err)
{
    const struct dt_shape *shape = &work->base.shape;
    const size_t elem = dt_dtype_size(shape->dtype);
    dt_result_t rc = find(gpu, &work->out, err);
    if (rc == DT_SUCCESS)
        rc = find(gpu, &work->in, err);
    if (rc != DT_SUCCESS)
        return rc;
    bool halves = shape->coll == DT_COLL_BCAST && gpu->comm->size > 2 &&
                  shape->count * elem >= BCAST_ROWS;
    size_t count =
        dt_at_least(longest(work, &work->out), longest(work, &work->in));
    if (halves)
        count = make_rows(work);
    work->direct = true;
    work->columns = DT_GPU_DIRECT_ROW / elem;
    *chunks = (uint32_t)dt_at_least(dt_ceiling(count, work->columns), 1);
    if (halves) {
        work->half = *chunks;
        *chunks *= 2;
    }
    return DT_SUCCESS;
}

dt_result_t dt_gpu_direct_out(const struct dt_gpu_lane *lane,
                              const struct dt_gpu_work *work, uint32_t number,
                              struct dt_error *err)
{
    struct dt_gpu *gpu = lane->gpu->gpu;
    const int device = lane->gpu->device;
    const size_t me = lane->gpu->comm->rank;
    const struct piece from = piece_of(work, true, me, number);
    const struct piece to = piece_of(work, false, me, number);
    const struct dt_gpu_copy copy = {
        .dst = to.buf, .src = from.buf, .len = to.len, .rows = 1};
    if (work->half && number == work->first + work->half)
        return gpu->ops->await(gpu, device, lane->done, number - 1, lane->out,
                               err);
    if (!from.len || !to.len || from.buf == to.buf)
        return DT_SUCCESS;
    return gpu->ops->copy(gpu, device, &copy, lane->out, err);
}

/* ---- the host's part ---- */

dt_result_t dt_gpu_direct_start(struct dt_gpu_lane *lane,
                                const struct dt_gpu_work *work, uint32_t number,
                                struct dt_error *err)
{
    struct dt_gpu_chunk *chunk = &lane->chunks[number % DT_GPU_SLOTS];
    struct dt_gpu_comm *gpu = lane->gpu;
    const bool alone = lane->kind != DT_COLL_ALLREDUCE;
    const size_t begin = alone ? lane->peer : 0;
    const size_t end = alone ? lane->peer + 1 : gpu->comm->size;
    struct dt_gpu_scope scope;
    dt_result_t rc = gpu->gpu->ops->enter(gpu->gpu, gpu->device, &scope, err);
    if (rc != DT_SUCCESS)
        return rc;
    chunk->direct = true;
    gpu->flying++;
    for (int way = 0; way < 2; way++)
        for (size_t r = begin; r < end; r++) {
            const struct piece piece = piece_of(work, !way, r, number);
            const struct dt_gpu_message message = {
                .send = !way,
                .peer = r,
                .slot = alone ? DT_GPU_TAG_P2P : DT_GPU_TAG_ALL,
                .buf = piece.buf,
                .len = piece.len,
                .memory = way ? work->in.memory : work->out.memory};
            if (r != gpu->comm->rank)
                dt_gpu_message_start(lane, chunk, &message);
        }
    gpu->gpu->ops->leave(gpu->gpu, &scope);
    return DT_SUCCESS;
}

bool dt_gpu_enter(struct dt_world *world, int *scope)
{
    struct dt_gpu_scope entered;
    const struct dt_gpu_comm *gpu = dt_gpu_device_of(world)->comms;
    while (gpu && !gpu->flying)
        gpu = gpu->next;
    if (!gpu || gpu->gpu->ops->enter(gpu->gpu, gpu->device, &entered, NULL) !=
                    DT_SUCCESS)
        return false;
    *scope = entered.capture_mode;
    return true;
}

void dt_gpu_exit_context(struct dt_world *world, int scope)
{
    struct dt_gpu *gpu = world->device->gpu;
    struct dt_gpu_scope entered = {scope};
    gpu->ops->leave(gpu, &entered);
}
