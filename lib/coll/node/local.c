/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.c - allreduce between the ranks of one node.
 *
 * Short buffers take one round: every rank posts its whole buffer, and every
 * rank reduces all buffers.
 *
 * Longer ones go in chunks of one block per rank. Chunk k takes two rounds:
 *
 *   2k      Rank i posts its part of the chunk, without block i. If its send
 *           buffer is memory that all ranks can read, it posts the place of
 *           that instead, in round 0 for all chunks; and if all ranks can
 *           write to its receive buffer, it names that as a target.
 *   2k + 1  Rank i has reduced block i of all ranks and written the result to
 *           all targets. For ranks that are not targets it posts the result.
 *           When all ranks are targets, only the last of these rounds is used.
 *
 * If the buffer is so short that a round costs more than half of the reduction,
 * every rank posts its own block, too. When round 0 then shows that no rank has
 * memory that the others can read, every rank reduces everything, and round 1
 * is not used.
 *
 * Only rank i reads block (k, i) of a buffer and writes its result, so it does
 * not matter whether the operation is in place. */
#include "coll/node/local.h"

#include <string.h>

#include "exec/exec.h"
#include "tl/board.h"

/* A result is copied on while it is in the first-level cache. */
#define SLICE ((size_t)16384)
/* Beyond this the results of all ranks do not fit in a cache until they are
 * read, and are written by non-temporal stores. */
#define NON_TEMPORAL ((size_t)24 << 20)
/* Chunks that this rank may be ahead of the others, so that a rank that is
 * delayed for a moment does not delay the others at once. */
#define AHEAD 6

enum {
    IS_BUFFER = 1,    /* this rank posted the place of its send buffer */
    IS_TARGET = 2,    /* all ranks can write to its receive buffer */
    IS_KNOWN = 4,     /* the headers of round 0 have been read: */
    ALL_TARGETS = 8,  /* all ranks are targets */
    ALL_PRIVATE = 16, /* no rank is a target or has posted a place */
    IS_WHOLE = 32,    /* every rank posts its own block, too */
};

static bool is(const struct dt_local *local, unsigned what)
{
    return local->flags & what;
}

/* Bytes up to which one round is fastest. Beyond, it is faster that each rank
 * reduces a part, or, with memory that all can read, that nothing is copied.
 * Where ranks share cores, a further round costs a turn of the scheduler for
 * each of them, so the limit is higher. */
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

/* ---- the cut ---- */

static size_t block_max(const struct dt_board *board)
{
    size_t others = board->size - 1;
    return board->piece_max / others & ~(size_t)63;
}

/* Bytes up to which a round costs more than half of the reduction. Two ranks
 * write and read the same number of bytes either way. */
static size_t whole_max(const struct dt_board *board)
{
    return board->size == 2 ? 32768 : board->size <= 4 ? 2048 : 0;
}

/* Bytes up to which slots are used for a buffer that all can read, too. Its
 * owner has just written to it: copying it to a slot is faster than a peer that
 * writes to cache lines which the owner has modified. */
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
    size_t most = block_max(board) / elem * n, line = 64 / elem;
    size_t chunks = (shape->count - 1) / most + 1;
    size_t share = (shape->count - 1) / (n * chunks) + 1;
    return (struct cut){.elem = elem,
                        .block = (share + line - 1) & ~(line - 1),
                        .chunks = chunks};
}

struct range {
    size_t begin, len; /* bytes of the buffer */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where block i of chunk k is. Block n begins where chunk k ends. */
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

bool dt_local_serves(const struct dt_board *board, const struct dt_shape *shape)
{
    return board && board->shared && board->size > 1 &&
           board->size <= DT_LOCAL_RANKS && shape->coll == DT_COLL_ALLREDUCE &&
           shape->count > 0 && dt_exec_supports(shape->dtype, shape->op);
}

uint64_t dt_local_rounds(const struct dt_board *board,
                         const struct dt_shape *shape)
{
    return is_short(board, shape) ? 1
                                  : 2 * (uint64_t)cut_of(board, shape).chunks;
}

/* Reduce the next count elements of n ranks into nout places. */
static void reduce(void *const *out, size_t nout, bool non_temporal,
                   const void *const *in, size_t n, size_t count,
                   const struct dt_shape *shape)
{
    const struct dt_exec_out to = {
        .at = out, .n = nout, .stream = non_temporal, .divisor = n};
    dt_exec_reduce_to(&to, in, n, count, shape->dtype, shape->op,
                      shape->prescale * shape->postscale);
}

/* ---- short buffers ---- */

static bool post_all(struct dt_local *local)
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
    dt_board_publish(b, local->round, local->notice);
    dt_board_prefetch_peers(b, local->round, len);
    local->posted = 1;
    return true;
}

static bool reduce_all(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    const void *in[DT_LOCAL_RANKS];
    bool notice = local->notice;
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
        notice |= view.notice;
    }
    void *at = local->recv;
    reduce(&at, 1, false, in, b->board.size, local->shape->count, local->shape);
    local->notice = notice;
    local->released = 1;
    local->done = true;
    dt_board_prefetch_own(b, local->round + 1, local->total);
    return true;
}

/* ---- the first round of a chunk ---- */

/* The offset of buf in memory that all ranks can read; 0 if it is not there, or
 * if slots are faster. */
static uint64_t where(const struct dt_local *local, const void *buf)
{
    return local->total > private_max(local->board)
               ? dt_board_find(local->board->shared, buf, local->total)
               : 0;
}

static void describe_buffers(struct dt_local *local, struct dt_board_line *line)
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

/* Post this rank's part of the next chunk, all but its own block. */
static bool post_part(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    size_t k = local->posted;
    uint64_t round = local->round + 2 * k;
    if (!dt_board_room(b, round))
        return false;
    struct dt_board_line *line = dt_board_line(b, round);
    if (k == 0)
        describe_buffers(local, line);
    if (is(local, IS_BUFFER)) {
        dt_board_publish(b, round, local->notice);
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
    dt_board_publish(b, round, local->notice);
    if (is(local, IS_WHOLE))
        dt_board_prefetch_peers(b, round, local->total);
    local->posted++;
    return true;
}

/* ---- the reduction ---- */

/* Read the headers of all ranks in round 0; false: some are not posted yet. */
static bool read_headers(struct dt_local *local,
                         struct dt_board_buffer *headers)
{
    struct dt_shared_board *b = local->board->shared;
    bool notice = local->notice, all = true, none = !is(local, IS_TARGET);
    none = none && !is(local, IS_BUFFER);
    for (size_t i = 0; i < b->board.size; i++) {
        if (i == b->board.index)
            continue;
        const struct dt_board_line *line =
            dt_board_peer_line(b, i, local->round);
        if (!line)
            return false;
        headers[i] = *(const volatile struct dt_board_buffer *)&line->buffer;
        if (line->kind != DT_LINE_BUFFER)
            headers[i].offset = 0;
        if (headers[i].total != local->total) {
            dt_board_mark_damaged(b, i);
            return false;
        }
        all = all && headers[i].target;
        none = none && !headers[i].target && !headers[i].offset;
        notice |= dt_board_notice(line);
    }
    local->notice = notice;
    local->flags |= IS_KNOWN;
    local->flags |= all ? ALL_TARGETS : none ? ALL_PRIVATE : 0;
    return true;
}

/* Rank i's contribution to this rank's block of chunk k; NULL: it is not posted
 * yet. */
static const void *part_of(struct dt_local *local, size_t k, size_t i,
                           const struct dt_board_buffer *headers,
                           struct range mine)
{
    struct dt_shared_board *b = local->board->shared;
    if (headers->offset)
        return dt_board_at(b, i, headers->offset + mine.begin, mine.len);
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

/* Reduce everything, as every rank has posted everything. */
static bool reduce_whole(struct dt_local *local)
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
    reduce(&at, 1, false, in, local->board->size, local->shape->count,
           local->shape);
    dt_board_prefetch_own(local->board->shared, local->round + 2, local->total);
    local->reduced = local->fetched = 1;
    return true;
}

/* Reduce this rank's block into nout places, and copy the result into slot if
 * there is one, a slice at a time: a copy need not fetch the lines of the slot,
 * which a peer has read, before it writes them; a reduction would. The pointers
 * in in and out are advanced. */
static void reduce_slices(struct dt_local *local, const void **in, void **out,
                          size_t nout, char *slot, size_t left)
{
    const struct dt_shape *shape = local->shape;
    const size_t n = local->board->size, elem = dt_dtype_size(shape->dtype);
    const bool non_temporal =
        is(local, ALL_TARGETS) && local->total > NON_TEMPORAL / n;
    for (size_t len; left; left -= len) {
        len = least(SLICE, left);
        reduce(out, nout, non_temporal, in, n, len / elem, shape);
        if (slot)
            slot = (char *)memcpy(slot, out[0], len) + len;
        for (size_t i = 0; i < nout; i++)
            out[i] = (char *)out[i] + len;
        for (size_t i = 0; i < n; i++)
            in[i] = (const char *)in[i] + len;
    }
}

static bool reduce_block(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    struct dt_board_buffer here[DT_LOCAL_RANKS], *headers = local->headers;
    const size_t k = local->reduced, n = b->board.size, me = b->board.index;
    const uint64_t round = local->round + 2 * k + 1;
    const struct range mine = block(local, k, me);
    const bool last = k + 1 == local->chunks;
    const void *in[DT_LOCAL_RANKS];
    void *out[DT_LOCAL_RANKS + 1] = {local->recv + mine.begin};
    size_t nout = 1;
    char *slot = NULL;
    if (!headers)
        headers = here;
    if ((!is(local, IS_KNOWN) || headers == here) &&
        !read_headers(local, headers))
        return false;
    if (is(local, IS_WHOLE) && is(local, ALL_PRIVATE))
        return reduce_whole(local);
    const bool post = last || !is(local, ALL_TARGETS);
    if (post && !dt_board_room(b, round))
        return false;
    for (size_t i = 0; i < n; i++) {
        in[i] = local->send + mine.begin;
        if (i != me && mine.len &&
            !(in[i] = part_of(local, k, i, &headers[i], mine)))
            return false;
        if (i != me && mine.len && headers[i].target &&
            !(out[nout++] =
                  dt_board_at(b, i, headers[i].target + mine.begin, mine.len)))
            return false;
    }
    struct dt_board_line *line = dt_board_line(b, round);
    if (post) {
        line->kind = DT_LINE_DATA;
        line->len = 0;
    }
    if (mine.len && !is(local, ALL_TARGETS)) {
        slot = dt_board_slot(b, round, mine.len);
        line->kind = DT_LINE_AT;
        line->len = (uint32_t)mine.len;
        line->buffer.offset = dt_board_slot_offset(b, slot);
    }
    reduce_slices(local, in, out, nout, slot, mine.len);
    if (post)
        dt_board_publish(b, round, false);
    local->reduced++;
    return true;
}

/* ---- the results of the others ---- */

/* Copy the results of chunk k; or, if the others write to this rank's receive
 * buffer, wait until they have written all chunks. */
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

/* ---- all rounds of the chunks ---- */

static void begin_chunks(struct dt_local *local)
{
    struct cut cut = cut_of(local->board, local->shape);
    local->total = local->shape->count * cut.elem;
    local->block = cut.block * cut.elem;
    local->chunks = (unsigned)cut.chunks;
    local->reduced = local->fetched = 0;
    local->flags = local->total <= whole_max(local->board) ? IS_WHOLE : 0;
    local->headers = NULL;
    post_part(local);
}

static void update_released(struct dt_local *local)
{
    if (local->done)
        local->released = 2 * (uint64_t)local->chunks;
    else if (!is(local, IS_TARGET))
        local->released =
            2 * local->fetched + (local->reduced > local->fetched);
    else if (local->reduced < local->chunks)
        local->released = 2 * local->reduced;
    else
        local->released = 2 * (uint64_t)local->chunks - 1;
}

static bool progress_chunks(struct dt_local *local)
{
    struct dt_shared_board *b = local->board->shared;
    const size_t chunks = local->chunks;
    bool moved = false;
    if (chunks > 1 && !local->headers &&
        !(local->headers = dt_board_get_buffers(b)))
        return false;
    const size_t over = is(local, IS_TARGET) ? local->reduced : local->fetched;
    if (local->posted < chunks && local->posted < over + AHEAD)
        moved = post_part(local);
    if (local->reduced < local->posted)
        moved |= reduce_block(local);
    if (local->fetched < (is(local, IS_TARGET) ? 1 : chunks) &&
        (!is(local, IS_TARGET) || local->reduced == chunks))
        moved |= fetch_blocks(local);
    local->done = local->reduced == chunks && local->fetched == chunks;
    if (local->done && local->headers)
        dt_board_put_buffers(b, local->headers);
    update_released(local);
    return moved;
}
/* ---- both ---- */

void dt_local_begin(struct dt_local *local, struct dt_board *board,
                    const struct dt_shape *shape, const void *sendbuf,
                    void *recvbuf, uint64_t round, bool notice)
{
    local->board = board;
    local->shape = shape;
    local->send = sendbuf;
    local->recv = recvbuf;
    local->round = round;
    local->notice = notice;
    local->done = false;
    local->released = 0;
    local->posted = 0;
    local->chunks = 0;
    if (is_short(board, shape)) {
        local->total = shape->count * dt_dtype_size(shape->dtype);
        post_all(local);
    } else {
        begin_chunks(local);
    }
}

bool dt_local_progress(struct dt_local *local)
{
    if (local->chunks)
        return progress_chunks(local);
    bool moved = !local->posted && post_all(local);
    return (local->posted && reduce_all(local)) || moved;
}

void dt_local_drop(struct dt_local *local)
{
    if (local->chunks && local->headers && !local->done)
        dt_board_put_buffers(local->board->shared, local->headers);
    local->headers = NULL;
}
