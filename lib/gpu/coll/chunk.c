/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* chunk.c - a chunk between its pinned slots (direct.c: without them):
 * a host collective of the twin, or messages, where not all ranks take part, or
 * where only the two ends of each know how long it is. */
#include <string.h>

#include "gpu/coll/comm.h"

static char *slot_of(const struct dt_gpu_lane *lane, int way, uint32_t number)
{
    return lane->slots[way] + number % DT_GPU_SLOTS * lane->slot;
}

/* The rows of a side in this chunk: how many elements each has, and where in
 * the slot they begin. */
static void clip_rows(const struct dt_gpu_side *side, size_t first,
                      size_t columns, size_t *counts, size_t *displs)
{
    size_t at = 0;
    for (size_t r = 0; r < side->rows; r++) {
        counts[r] = dt_gpu_clip(side->counts[r], first, columns);
        displs[r] = at;
        at += counts[r];
    }
}

/* ---- a collective ---- */

static dt_result_t start_collective(struct dt_gpu_lane *lane,
                                    struct dt_gpu_work *work, uint32_t number,
                                    struct dt_error *err)
{
    struct dt_gpu_chunk *chunk = &lane->chunks[number % DT_GPU_SLOTS];
    struct dt_shape shape = work->base.shape;
    const size_t first = (number - work->first) * work->columns;
    char *out = slot_of(lane, 0, number), *in = slot_of(lane, 1, number);
    size_t *counts = work->scratch;
    shape.count = dt_gpu_clip(shape.count, first, work->columns);
    shape.in_place = shape.coll == DT_COLL_BCAST;
    if (shape.coll == DT_COLL_BCAST)
        out = in;
    if (shape.coll == DT_COLL_ALLGATHER && shape.sendcounts) {
        clip_rows(&work->in, first, work->columns, counts,
                  counts + lane->gpu->comm->size);
        shape.sendcounts = counts;
        shape.recvdispls = counts + lane->gpu->comm->size;
    } else if (shape.coll == DT_COLL_REDUCE_SCATTER && shape.recvcounts) {
        clip_rows(&work->out, first, work->columns, counts,
                  counts + lane->gpu->comm->size);
        shape.recvcounts = counts;
    }
    return dt_comm_begin(lane->gpu->twin, &shape, out, in, &chunk->request,
                         err);
}

/* ---- messages ---- */

static uint64_t tag_of(const struct dt_gpu_lane *lane, uint64_t slot)
{
    return (uint64_t)lane->gpu->comm->id << DT_TAG_COMM_SHIFT | slot;
}

void dt_gpu_message_start(struct dt_gpu_lane *lane, struct dt_gpu_chunk *chunk,
                          const struct dt_gpu_message *message)
{
    const struct dt_comm *comm = lane->gpu->comm;
    const size_t peer = comm->members[message->peer];
    struct dt_tl *tl = dt_world_route(comm->world, peer);
    if (!message->len)
        return;
    struct dt_tl_req *req = &chunk->messages[chunk->nmessages++];
    *req = (struct dt_tl_req){.memory = message->memory};
    if (message->send)
        tl->ops->isend(tl, peer, tag_of(lane, message->slot), message->buf,
                       message->len, req);
    else
        tl->ops->irecv(tl, peer, tag_of(lane, message->slot), message->buf,
                       message->len, req);
}

static void start_message(struct dt_gpu_lane *lane,
                          const struct dt_gpu_work *work, uint32_t number)
{
    struct dt_gpu_chunk *chunk = &lane->chunks[number % DT_GPU_SLOTS];
    const struct dt_shape *shape = &work->base.shape;
    bool send = lane->kind == DT_COLL_SEND;
    size_t count = dt_gpu_clip(
        shape->count, (number - work->first) * work->columns, work->columns);
    const struct dt_gpu_message message = {.send = send,
                                           .peer = lane->peer,
                                           .slot = DT_GPU_TAG_P2P,
                                           .buf = slot_of(lane, !send, number),
                                           .len = count *
                                                  dt_dtype_size(shape->dtype)};
    dt_gpu_message_start(lane, chunk, &message);
}

/* A row to each rank, and one from it; that for myself is copied. */
static void start_rows(struct dt_gpu_lane *lane, struct dt_gpu_work *work,
                       uint32_t number)
{
    struct dt_gpu_chunk *chunk = &lane->chunks[number % DT_GPU_SLOTS];
    const struct dt_comm *comm = lane->gpu->comm;
    const size_t first = (number - work->first) * work->columns;
    const size_t elem = dt_dtype_size(work->base.shape.dtype);
    size_t *counts = work->scratch, *displs = work->scratch + comm->size;
    const char *self = NULL;
    for (int way = 0; way < 2; way++) {
        clip_rows(way ? &work->in : &work->out, first, work->columns, counts,
                  displs);
        for (size_t r = 0; r < comm->size; r++) {
            char *row = slot_of(lane, way, number) + displs[r] * elem;
            const struct dt_gpu_message message = {.send = !way,
                                                   .peer = r,
                                                   .slot = DT_GPU_TAG_ALL,
                                                   .buf = row,
                                                   .len = counts[r] * elem};
            if (r != comm->rank)
                dt_gpu_message_start(lane, chunk, &message);
            else if (!way)
                self = row;
            else if (counts[r])
                memcpy(row, self, counts[r] * elem);
        }
    }
}

/* ---- both ---- */

dt_result_t dt_gpu_chunk_start(struct dt_gpu_lane *lane,
                               struct dt_gpu_work *work, uint32_t number,
                               struct dt_error *err)
{
    struct dt_gpu_chunk *chunk = &lane->chunks[number % DT_GPU_SLOTS];
    chunk->request = NULL;
    chunk->nmessages = 0;
    if (work->direct)
        return dt_gpu_direct_start(lane, work, number, err);
    if (lane->kind == DT_COLL_SEND || lane->kind == DT_COLL_RECV)
        start_message(lane, work, number);
    else if (work->base.shape.coll == DT_COLL_ALLTOALL && work->out.counts)
        start_rows(lane, work, number);
    else
        return start_collective(lane, work, number, err);
    return DT_SUCCESS;
}

dt_result_t dt_gpu_chunk_test(struct dt_gpu_lane *lane, uint32_t number,
                              struct dt_error *err)
{
    struct dt_gpu_chunk *chunk = &lane->chunks[number % DT_GPU_SLOTS];
    struct dt_comm *twin = lane->gpu->twin;
    if (chunk->request) {
        if (chunk->request->status == DT_IN_PROGRESS)
            return DT_IN_PROGRESS;
        return dt_comm_retire(twin, chunk->request, err);
    }
    while (chunk->nmessages) {
        dt_result_t status = chunk->messages[chunk->nmessages - 1].status;
        if (status == DT_IN_PROGRESS)
            return DT_IN_PROGRESS;
        if (status != DT_SUCCESS)
            return dt_error_set(err, status, "a message was lost");
        chunk->nmessages--;
    }
    lane->gpu->flying -= chunk->direct;
    chunk->direct = false;
    return DT_SUCCESS;
}
