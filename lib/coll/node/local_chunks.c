/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local_chunks.c - the allreduce of one node for all but short buffers.
 *
 * Chunk k takes two rounds:
 *
 *   2k      rank i shows its part of the chunk, without block i. If its buffer
 *           is memory that all can read, it shows that in round 0, once for
 *           all chunks; and if its receive buffer is such memory, it shows it,
 *           too, as a target.
 *   2k + 1  rank i has folded block i of all. Those that are targets have got
 *           it by now; for the others it shows the result. When all are
 *           targets, only the last of these rounds is used.
 *
 * If the buffer is so short that one round is worth more than half of the
 * folding, everybody shows its block, too; then, when round 0 says that nobody
 * has memory that all can read, everybody folds everything, and round 1 is not
 * used.
 *
 * Block (k, i) of a buffer is read, and its result written, by rank i alone,
 * so it does not matter whether the operation is in place. */
#include "coll/node/local_chunks.h"

#include <string.h>

/* A result is copied on while it is in the first-level cache. */
#define BITE ((size_t)16384)
/* Results of all ranks that no cache holds until they are read. */
#define PAST ((size_t)24 << 20)
/* Chunks this rank is ahead of the others at most, so that a rank that is held
 * up for a moment does not hold up the others at once. */
#define AHEAD 6

enum {
    IS_BUFFER = 1,    /* mine is shown as one */
    IS_TARGET = 2,    /* mine can be written by all */
    IS_KNOWN = 4,     /* what the others are */
    ALL_TARGETS = 8,  /* they are */
    ALL_PRIVATE = 16, /* neither, on any rank */
    IS_WHOLE = 32,    /* nobody leaves out a block in the first round */
};

static bool is(const struct dt_local *local, unsigned what)
{
    return local->flags & what;
}

/* ---- the cut ---- */

size_t dt_local_block_max(const struct dt_board *board)
{
    size_t others = board->size - 1;
    return board->piece_max / others & ~(size_t)63;
}

/* Up to here one round is worth more than half of the folding. Two ranks write
 * and read as much for each other either way. */
static size_t whole_max(const struct dt_board *board)
{
    return board->size == 2 ? 32768 : board->size <= 4 ? 2048 : 0;
}

/* Up to here a buffer that all can read is passed through slots, too: what its
 * owner has just written comes faster from there than the peer can write to
 * where the owner has written. */
static size_t private_max(const struct dt_board *board)
{
    return board->size == 2 ? (size_t)64 << 10 : 0;
}

struct cut {
    size_t elem;   /* bytes */
    size_t block;  /* elements, a multiple of 64 bytes */
    size_t chunks; /* how many */
};

static struct cut cut_of(const struct dt_board *board,
                         const struct dt_shape *shape)
{
    size_t n = board->size, elem = dt_dtype_size(shape->dtype);
    size_t most = dt_local_block_max(board) / elem * n, line = 64 / elem;
    size_t chunks = (shape->count - 1) / most + 1;
    size_t share = (shape->count - 1) / (n * chunks) + 1;
    return (struct cut){.elem = elem,
                        .block = (share + line - 1) & ~(line - 1),
                        .chunks = chunks};
}

uint64_t dt_local_chunks_rounds(const struct dt_board *board,
                                const struct dt_shape *shape)
{
    return 2 * (uint64_t)cut_of(board, shape).chunks;
}

struct range {
    size_t begin, len; /* bytes of the buffer */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where block i of chunk k is; block n is what is behind the last. */
static struct range block(const struct dt_local *local, size_t k, size_t i)
{
    size_t size = local->block;
    size_t begin = least((k * local->board->size + i) * size, local->total);
    return (struct range){begin, least(size, local->total - begin)};
}

static struct range chunk(const struct dt_local *local, size_t k)
{
    size_t begin = block(local, k, 0).begin;
    return (struct range){begin, block(local, k + 1, 0).begin - begin};
}

/* ---- the first round of a chunk ---- */

/* Where all can read it; 0: nowhere, or it is not worth it. */
static uint64_t where(const struct dt_local *local, const void *buf)
{
    return local->total > private_max(local->board)
               ? dt_board_find(local->board->shared, buf, local->total)
               : 0;
}

static void say_buffers(struct dt_local *local, struct dt_board_line *line)
{
    uint64_t offset = where(local, local->send);
    line->buffer.total = local->total;
    line->buffer.target = where(local, local->recv);
    line->kind = DT_LINE_AT;
    line->len = 0;
    if (line->buffer.target)
        local->flags |= IS_TARGET;
    if (offset) {
        local->flags |= IS_BUFFER;
        line->kind = DT_LINE_BUFFER;
        line->buffer.offset = offset;
    }
}

/* Show this rank's part of the next chunk, all but its own block. */
static bool show_part(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    size_t k = local->posted;
    uint64_t round = local->round + 2 * k;
    if (!dt_board_room(b, round))
        return false;
    struct dt_board_line *line = dt_board_line(b, round);
    if (k == 0)
        say_buffers(local, line);
    if (is(local, IS_BUFFER)) {
        dt_board_publish(b, round, local->note);
        local->posted = local->chunks;
        return true;
    }
    struct range all = chunk(local, k);
    struct range mine = block(local, k, b->board.index);
    if (is(local, IS_WHOLE))
        mine.len = 0;
    size_t before = mine.begin - all.begin;
    size_t after = all.len - before - mine.len;
    char *slot = dt_board_slot(b, round, before + after);
    memcpy(slot, local->send + all.begin, before);
    memcpy(slot + before, local->send + mine.begin + mine.len, after);
    line->kind = DT_LINE_AT;
    line->len = (uint32_t)(before + after);
    line->buffer.offset = dt_board_slot_offset(b, slot);
    dt_board_publish(b, round, local->note);
    if (is(local, IS_WHOLE))
        dt_board_prefetch_peers(b, round, local->total);
    local->posted++;
    return true;
}

/* ---- folding ---- */

/* Hear what all say in round 0; false: not all have spoken. */
static bool learn(struct dt_local *local, struct dt_board_buffer *said)
{
    struct dt_shared_board *b = local->board->shared;
    bool note = local->note, all = true, none = !is(local, IS_TARGET);
    none = none && !is(local, IS_BUFFER);
    for (size_t i = 0; i < b->board.size; i++) {
        if (i == b->board.index)
            continue;
        const struct dt_board_line *line =
            dt_board_peer_line(b, i, local->round);
        if (!line)
            return false;
        said[i] = *(const volatile struct dt_board_buffer *)&line->buffer;
        if (line->kind != DT_LINE_BUFFER)
            said[i].offset = 0;
        if (said[i].total != local->total) {
            dt_board_mark_damaged(b, i);
            return false;
        }
        all = all && said[i].target;
        none = none && !said[i].target && !said[i].offset;
        note |= dt_board_notice(line);
    }
    local->note = note;
    local->flags |= IS_KNOWN;
    local->flags |= all ? ALL_TARGETS : none ? ALL_PRIVATE : 0;
    return true;
}

/* Where rank i's contribution to my block of chunk k can be read; NULL: it is
 * not there yet. */
static const void *part_of(struct dt_local *local, size_t k, size_t i,
                           const struct dt_board_buffer *said,
                           struct range mine)
{
    struct dt_shared_board *b = local->board->shared;
    if (said->offset)
        return dt_board_at(b, i, said->offset + mine.begin, mine.len);
    struct dt_board_view view;
    const struct dt_board_line *line =
        dt_board_peer_line(b, i, local->round + 2 * k);
    if (!line || !dt_board_view(b, i, line, &view))
        return NULL;
    size_t at = mine.begin - chunk(local, k).begin;
    if (i < b->board.index && !is(local, IS_WHOLE))
        at -= block(local, k, i).len;
    if (view.len < at || view.len - at < mine.len) {
        dt_board_mark_damaged(b, i);
        return NULL;
    }
    return (const char *)view.data + at;
}

/* Everything, as all have shown everything. */
static bool fold_whole(struct dt_local *local)
{
    const struct dt_board_buffer nowhere = {0};
    const struct range all = {0, local->total};
    const void *in[DT_LOCAL_RANKS];
    for (size_t i = 0; i < local->board->size; i++) {
        in[i] = local->send;
        if (i != local->board->index &&
            !(in[i] = part_of(local, 0, i, &nowhere, all)))
            return false;
    }
    void *at = local->recv;
    dt_local_fold(&(struct dt_exec_out){.at = &at, .n = 1}, in,
                  local->board->size, local->shape->count, local->shape);
    dt_board_prefetch_own(local->board->shared, local->round + 2, local->total);
    local->folded = local->fetched = 1;
    return true;
}

/* Fold my block into nout places, and copy it on into slot, where there is one,
 * a bite at a time: what a peer has read is written better by a copy, which
 * need not fetch it first, than by a fold. The lists are used up. */
static void fold_bites(struct dt_local *local, const void **in, void **out,
                       size_t nout, char *slot, size_t left)
{
    const struct dt_shape *shape = local->shape;
    const size_t n = local->board->size, elem = dt_dtype_size(shape->dtype);
    /* undivided sums are read again soon */
    const bool past = is(local, ALL_TARGETS) && shape->op != DT_OP_AVG &&
                      local->total > PAST / n;
    for (size_t len; left; left -= len) {
        len = least(BITE, left);
        dt_local_fold(&(struct dt_exec_out){out, nout, past}, in, n, len / elem,
                      shape);
        if (slot)
            slot = (char *)memcpy(slot, out[0], len) + len;
        for (size_t i = 0; i < nout; i++)
            out[i] = (char *)out[i] + len;
        for (size_t i = 0; i < n; i++)
            in[i] = (const char *)in[i] + len;
    }
}

static bool fold_block(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    struct dt_board_buffer here[DT_LOCAL_RANKS], *said = local->said;
    const size_t k = local->folded, n = b->board.size, me = b->board.index;
    const uint64_t round = local->round + 2 * k + 1;
    const struct range mine = block(local, k, me);
    const bool last = k + 1 == local->chunks;
    const void *in[DT_LOCAL_RANKS];
    void *out[DT_LOCAL_RANKS + 1] = {local->recv + mine.begin};
    size_t nout = 1;
    char *slot = NULL;
    if (!said)
        said = here;
    if ((!is(local, IS_KNOWN) || said == here) && !learn(local, said))
        return false;
    if (is(local, IS_WHOLE) && is(local, ALL_PRIVATE))
        return fold_whole(local);
    const bool show = last || !is(local, ALL_TARGETS);
    if (show && !dt_board_room(b, round))
        return false;
    for (size_t i = 0; i < n; i++) {
        in[i] = local->send + mine.begin;
        if (i != me && mine.len &&
            !(in[i] = part_of(local, k, i, &said[i], mine)))
            return false;
        if (i != me && mine.len && said[i].target &&
            !(out[nout++] =
                  dt_board_at(b, i, said[i].target + mine.begin, mine.len)))
            return false;
    }
    struct dt_board_line *line = dt_board_line(b, round);
    if (show) {
        line->kind = DT_LINE_DATA;
        line->len = 0;
    }
    if (mine.len && !is(local, ALL_TARGETS)) {
        slot = dt_board_slot(b, round, mine.len);
        line->kind = DT_LINE_AT;
        line->len = (uint32_t)mine.len;
        line->buffer.offset = dt_board_slot_offset(b, slot);
    }
    fold_bites(local, in, out, nout, slot, mine.len);
    if (show)
        dt_board_publish(b, round, false);
    local->folded++;
    return true;
}

/* ---- the results of the others ---- */

/* Chunk k's, or, if they write here themselves, that they have done so. */
static bool fetch_blocks(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    const struct dt_board_line *line[DT_LOCAL_RANKS];
    const size_t n = b->board.size, me = b->board.index;
    const bool target = is(local, IS_TARGET);
    const size_t k = target ? local->chunks - 1 : local->fetched;
    for (size_t i = 0; i < n; i++)
        if (i != me &&
            !(line[i] = dt_board_peer_line(b, i, local->round + 2 * k + 1)))
            return false;
    for (size_t i = 0; i < n && !target; i++) {
        struct dt_board_view view;
        struct range theirs = block(local, k, i);
        if (i == me || !theirs.len)
            continue;
        if (!dt_board_view(b, i, line[i], &view))
            return false;
        if (view.len != theirs.len) {
            dt_board_mark_damaged(b, i);
            return false;
        }
        memcpy(local->recv + theirs.begin, view.data, theirs.len);
    }
    local->fetched = k + 1;
    return true;
}

/* ---- all of it ---- */

void dt_local_chunks_begin(struct dt_local *local)
{
    struct cut cut = cut_of(local->board, local->shape);
    local->total = local->shape->count * cut.elem;
    local->block = cut.block * cut.elem;
    local->chunks = (unsigned)cut.chunks;
    local->folded = local->fetched = 0;
    local->flags = local->total <= whole_max(local->board) ? IS_WHOLE : 0;
    local->said = NULL;
    show_part(local);
}

static void update_passed(struct dt_local *local)
{
    if (local->done)
        local->passed = 2 * (uint64_t)local->chunks;
    else if (!is(local, IS_TARGET))
        local->passed = 2 * local->fetched + (local->folded > local->fetched);
    else if (local->folded < local->chunks)
        local->passed = 2 * local->folded;
    else
        local->passed = 2 * (uint64_t)local->chunks - 1;
}

bool dt_local_chunks_progress(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    const size_t chunks = local->chunks;
    bool moved = false;
    if (chunks > 1 && !local->said && !(local->said = dt_board_get_buffers(b)))
        return false;
    const size_t over = is(local, IS_TARGET) ? local->folded : local->fetched;
    if (local->posted < chunks && local->posted < over + AHEAD)
        moved = show_part(local);
    if (local->folded < local->posted)
        moved |= fold_block(local);
    if (local->fetched < (is(local, IS_TARGET) ? 1 : chunks) &&
        (!is(local, IS_TARGET) || local->folded == chunks))
        moved |= fetch_blocks(local);
    local->done = local->folded == chunks && local->fetched == chunks;
    if (local->done && local->said)
        dt_board_put_buffers(b, local->said);
    update_passed(local);
    return moved;
}
