/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stage.c - a work in chunks, each put on the two streams of its lane:
 * through pinned memory of the host, or, direct, without it. */
#include <stdlib.h>

#include "coll/algorithm/algorithm.h"
#include "gpu/coll/comm.h"

/* A work of more than this is cut, so that its copies overlap with what the
 * ranks do, in so many chunks or more. */
#define CHUNK_LEAST ((size_t)512 << 10)
#define CHUNKS      8

#define COLUMNS 64 /* chunks begin at multiples, but the last ones */

/* Rows of a slot; the same on all ranks. */
static size_t slot_rows(const struct dt_gpu_work *work)
{
    switch (work->base.shape.coll) {
    case DT_COLL_ALLGATHER:
    case DT_COLL_REDUCE_SCATTER:
    case DT_COLL_ALLTOALL:
    case DT_COLL_GATHER:
    case DT_COLL_SCATTER:
        return work->base.comm->size;
    default:
        return 1;
    }
}

static size_t most(const struct dt_gpu_side *side)
{
    size_t count = 0;
    for (size_t r = 0; side->counts && r < side->rows; r++)
        count = dt_at_least(count, side->counts[r]);
    return count;
}

/* The columns of a chunk are the same on all ranks. How many of them there are
 * is known to each rank for itself in dt_alltoallv, where a rank that is
 * through does not hold up the others. */
static uint32_t cut(struct dt_gpu_work *work, const struct dt_gpu_lane *lane)
{
    const struct dt_shape *shape = &work->base.shape;
    size_t row = slot_rows(work) * dt_dtype_size(shape->dtype);
    size_t room = dt_at_least(lane->slot / row, 1), count = shape->count;
    if (work->out.counts)
        count = dt_at_least(most(&work->out), most(&work->in));
    work->columns = room;
    if (!shape->senddispls) { /* not dt_alltoallv */
        size_t want = dt_at_least(dt_ceiling(count, CHUNKS),
                                  dt_ceiling(CHUNK_LEAST, row));
        want = dt_ceiling(want, COLUMNS) * COLUMNS;
        if (want < room)
            work->columns = want;
    }
    return (uint32_t)dt_at_least(dt_ceiling(count, work->columns), 1);
}

/* Between the user's rows and the slot. */
static dt_result_t copy(const struct dt_gpu_comm *gpu,
                        const struct dt_gpu_copy *to_slot, bool out,
                        dt_stream_t stream, struct dt_error *err)
{
    struct dt_gpu_copy copy = *to_slot;
    if (!out) {
        copy.dst = (void *)to_slot->src;
        copy.src = to_slot->dst;
        copy.dst_pitch = to_slot->src_pitch;
        copy.src_pitch = to_slot->dst_pitch;
    }
    return gpu->gpu->ops->copy(gpu->gpu, gpu->device, &copy, stream, err);
}

/* The columns of a chunk, of all rows. */
static dt_result_t copy_side(const struct dt_gpu_comm *gpu,
                             const struct dt_gpu_work *work, size_t first,
                             char *slot, bool out, dt_stream_t stream,
                             struct dt_error *err)
{
    const struct dt_gpu_side *side = out ? &work->out : &work->in;
    size_t elem = dt_dtype_size(work->base.shape.dtype);
    dt_result_t rc = DT_SUCCESS;
    if (!side->rows || work->direct)
        return DT_SUCCESS;
    if (!side->counts) {
        size_t count =
            dt_gpu_clip(work->base.shape.count, first, work->columns);
        const struct dt_gpu_copy rows = {.dst = slot,
                                         .src = side->buf + first * elem,
                                         .len = count * elem,
                                         .rows = side->rows,
                                         .dst_pitch = count * elem,
                                         .src_pitch = side->pitch};
        return copy(gpu, &rows, out, stream, err);
    }
    for (size_t r = 0; rc == DT_SUCCESS && r < side->rows; r++) {
        size_t count = dt_gpu_clip(side->counts[r], first, work->columns);
        const struct dt_gpu_copy row = {.dst = slot,
                                        .src = side->buf +
                                               (side->displs[r] + first) * elem,
                                        .len = count * elem,
                                        .rows = 1};
        if (count)
            rc = copy(gpu, &row, out, stream, err);
        slot += count * elem;
    }
    return rc;
}

static dt_result_t put_out(const struct dt_gpu_lane *lane,
                           const struct dt_gpu_work *work, uint32_t number,
                           struct dt_error *err)
{
    struct dt_gpu *gpu = lane->gpu->gpu;
    int device = lane->gpu->device;
    /* that of root's bcast is sent from where the others receive it */
    int way = work->base.shape.coll == DT_COLL_BCAST;
    char *slot = lane->slots[way];
    if (slot)
        slot += number % DT_GPU_SLOTS * lane->slot;
    dt_result_t rc = DT_SUCCESS;
    if (!dt_gpu_reached(lane->free, number - DT_GPU_SLOTS))
        rc = gpu->ops->await(gpu, device, lane->free, number - DT_GPU_SLOTS,
                             lane->out, err);
    if (rc == DT_SUCCESS && work->direct)
        rc = dt_gpu_direct_out(lane, work, number, err);
    if (rc == DT_SUCCESS)
        rc = copy_side(lane->gpu, work, (number - work->first) * work->columns,
                       slot, true, lane->out, err);
    if (rc == DT_SUCCESS)
        rc = gpu->ops->signal(gpu, device, lane->ready, number, lane->out, err);
    return rc;
}

static dt_result_t put_in(const struct dt_gpu_lane *lane,
                          const struct dt_gpu_work *work, uint32_t number,
                          struct dt_error *err)
{
    struct dt_gpu *gpu = lane->gpu->gpu;
    int device = lane->gpu->device;
    char *slot = lane->slots[1];
    if (slot)
        slot += number % DT_GPU_SLOTS * lane->slot;
    dt_result_t rc =
        gpu->ops->await(gpu, device, lane->done, number, lane->in, err);
    if (rc == DT_SUCCESS)
        rc = copy_side(lane->gpu, work, (number - work->first) * work->columns,
                       slot, false, lane->in, err);
    if (rc == DT_SUCCESS)
        rc = gpu->ops->signal(gpu, device, lane->free, number, lane->in, err);
    return rc;
}

static dt_result_t no_capture(const struct dt_gpu_comm *gpu,
                              const struct dt_call *call, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "%s: goes through the host, which no graph can "
                        "capture: %s",
                        dt_call_name(call->kind),
                        *gpu->reason ? gpu->reason
                                     : "only even collectives of ranks whose "
                                       "GPUs reach each other do not");
}

/* So many in each chunk, where there are not yet. */
static dt_result_t room_for_messages(struct dt_gpu_lane *lane, size_t n,
                                     struct dt_error *err)
{
    for (size_t i = 0; n && i < DT_GPU_SLOTS; i++) {
        struct dt_gpu_chunk *chunk = &lane->chunks[i];
        if (!chunk->messages)
            chunk->messages = calloc(n, sizeof(*chunk->messages));
        if (!chunk->messages)
            return dt_error_set(err, DT_ERR_NO_MEMORY,
                                "no memory for %zu messages", n);
    }
    return DT_SUCCESS;
}

/* Direct collectives, and dt_alltoallv: to, and from, each rank. */
static size_t messages_of(const struct dt_gpu_work *work)
{
    const struct dt_shape *shape = &work->base.shape;
    if (shape->coll == DT_COLL_SEND || shape->coll == DT_COLL_RECV)
        return 1;
    return work->direct || shape->senddispls ? 2 * work->base.comm->size : 0;
}

dt_result_t dt_gpu_stage(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                         const struct dt_call *call, struct dt_error *err)
{
    const struct dt_shape *shape = &work->base.shape;
    struct dt_gpu_lane *lane;
    uint32_t chunks = 0;
    if (call->capturing)
        return no_capture(gpu, call, err);
    dt_result_t rc = dt_gpu_lane(gpu, shape->coll, shape->root, &lane, err);
    if (rc == DT_SUCCESS && dt_gpu_direct_serves(lane, shape))
        rc = dt_gpu_direct_open(gpu, work, &chunks, err);
    else if (rc == DT_SUCCESS)
        chunks = cut(work, lane);
    if (rc == DT_SUCCESS)
        rc = room_for_messages(lane, messages_of(work), err);
    /* what is in the lane waits for nothing that comes later on the stream */
    if (rc == DT_SUCCESS)
        rc = gpu->gpu->ops->order(gpu->gpu, gpu->device, work->stream,
                                  lane->out, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpu_append(lane, work, chunks, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (uint32_t i = 0; rc == DT_SUCCESS && i < work->chunks; i++) {
        rc = put_out(lane, work, work->first + i, err);
        if (rc == DT_SUCCESS)
            rc = put_in(lane, work, work->first + i, err);
    }
    return rc;
}
