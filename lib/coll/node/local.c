/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.c - allreduce between the ranks of one node: short buffers in one
 * round, in which everybody shows everything and folds everything. */
#include "coll/node/local.h"

#include <string.h>

#include "coll/node/local_chunks.h"
#include "tl/board.h"

/* Beyond this, it is cheaper for each rank to fold a part, or, with memory that
 * all can read, not to copy. Where ranks share cores, a round more is a turn of
 * the scheduler for all of them. */
static size_t short_max(const struct dt_board *board)
{
    if (board->shared->oversubscribed)
        return board->size <= 64 ? 16384 / board->size : 256;
    return board->size == 2 ? 4096 : board->size <= 4 ? 1024 : 256;
}

static inline bool is_short(const struct dt_board *board,
                            const struct dt_shape *shape)
{
    return shape->count <= short_max(board) &&
           shape->count * dt_dtype_size(shape->dtype) <= short_max(board);
}

bool dt_local_serves(const struct dt_board *board, const struct dt_shape *shape)
{
    return board && board->shared && board->size > 1 &&
           board->size <= DT_LOCAL_RANKS && shape->coll == DT_COLL_ALLREDUCE &&
           shape->count > 0 && dt_exec_supports(shape->dtype, shape->op);
}

uint64_t dt_local_rounds(const struct dt_board *board,
                         const struct dt_shape *shape)
{
    return is_short(board, shape) ? 1 : dt_local_chunks_rounds(board, shape);
}

void dt_local_fold(const struct dt_exec_out *out, const void *const *in,
                   size_t n, size_t count, const struct dt_shape *shape)
{
    dt_exec_reduce_to(out, in, n, count, shape->dtype, shape->op,
                      shape->prescale * shape->postscale);
    for (size_t i = 0; shape->op == DT_OP_AVG && i < out->n; i++)
        dt_exec_divide(out->at[i], count, shape->dtype, n);
}

/* ---- short ones ---- */

static bool show_all(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    if (!dt_board_room(b, local->round))
        return false;
    size_t len = local->total;
    struct dt_board_line *line = dt_board_line(b, local->round);
    char *to = line->data;
    line->len = (uint32_t)len;
    line->kind = DT_LINE_DATA;
    if (!dt_board_inline(b, len)) {
        to = dt_board_slot(b, local->round, len);
        line->kind = DT_LINE_AT;
        line->buffer.offset = dt_board_slot_offset(b, to);
    }
    memcpy(to, local->send, len);
    dt_board_publish(b, local->round, local->note);
    dt_board_prefetch_peers(b, local->round, len);
    local->posted = 1;
    return true;
}

static bool fold_all(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    const void *in[DT_LOCAL_RANKS];
    bool note = local->note;
    for (size_t i = 0; i < b->board.size; i++) {
        struct dt_board_view view;
        in[i] = local->send;
        if (i == b->board.index)
            continue;
        const struct dt_board_line *line =
            dt_board_peer_line(b, i, local->round);
        if (!line || !dt_board_view(b, i, line, &view))
            return false;
        if (view.len != local->total) {
            dt_board_mark_damaged(b, i);
            return false;
        }
        in[i] = view.data;
        note |= view.notice;
    }
    void *at = local->recv;
    dt_local_fold(&(struct dt_exec_out){.at = &at, .n = 1}, in, b->board.size,
                  local->shape->count, local->shape);
    local->note = note;
    local->passed = 1;
    local->done = true;
    dt_board_prefetch_own(b, local->round + 1, local->total);
    return true;
}

/* ---- all ---- */

void dt_local_begin(struct dt_local *local, struct dt_board *board,
                    const struct dt_shape *shape, const void *sendbuf,
                    void *recvbuf, uint64_t round, bool note)
{
    local->board = board;
    local->shape = shape;
    local->send = sendbuf;
    local->recv = recvbuf;
    local->round = round;
    local->note = note;
    local->done = false;
    local->passed = 0;
    local->posted = 0;
    local->chunks = 0;
    if (is_short(board, shape)) {
        local->total = shape->count * dt_dtype_size(shape->dtype);
        show_all(local);
    } else {
        dt_local_chunks_begin(local);
    }
}

bool dt_local_progress(struct dt_local *local)
{
    if (local->chunks)
        return dt_local_chunks_progress(local);
    bool moved = !local->posted && show_all(local);
    return (local->posted && fold_all(local)) || moved;
}

void dt_local_drop(struct dt_local *local)
{
    if (local->chunks && local->said && !local->done)
        dt_board_put_buffers(local->board->shared, local->said);
    local->said = NULL;
}
