/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* reduce_scatter.c - two-level reduce-scatter, pairwise between the nodes.
 *
 * The blocks of a node's ranks are its region of the send buffer; each region
 * is cut into pieces, those into one shard per rail. For piece p of all
 * regions:
 *
 *   1. one round per node m, my own first, then by distance: every rank posts
 *      piece p of the region of m, local rank j reduces shard j of it
 *   2. local rank j sends it to local rank j of m, and adds up what comes for
 *      the own region, by distance
 *   3. local rank j posts shard j of the own piece; who has a block in it
 *      fetches that
 *
 * Sums are in slots of scratch space that take turns; as in rooted.c, all wait
 * for each other's posts, and those for their fetches. */
#include <math.h>
#include <stdlib.h>

#include "coll/algorithm/blocks.h"
#include "coll/algorithm/cut.h"

#define WINDOW  2
#define SCRATCH ((size_t)16 << 20) /* bytes in all, about */

struct scatter {
    const struct dt_plan *plan;
    const struct dt_layout *layout;
    const struct dt_group *node;
    struct dt_block *blocks; /* of the send buffer */
    size_t elem, nshards;
    size_t piece; /* bytes, at most */
    size_t room;  /* bytes of a shard, at most */
    /* per slot: the operation after which the own sum is complete, and after
     * which all of it is free */
    size_t ready[WINDOW], free[WINDOW];
    size_t *sums; /* per distance: the operation after which the sum is there */
};

static const struct dt_group *node_at(const struct scatter *s, size_t distance)
{
    const struct dt_layout *layout = s->layout;
    return &layout->nodes[(layout->node + distance) % layout->nnodes];
}

/* Piece p of the region of a node, which is empty behind the last: runs of
 * blocks that follow each other are cut together. */
static struct dt_block piece(const struct scatter *s,
                             const struct dt_group *node, size_t p)
{
    for (size_t i = 0, end, len; i < node->size; i = end) {
        end = dt_blocks_run(s->blocks, node->ranks, i, node->size, &len);
        size_t n = dt_ceiling(len, s->piece), at = p * s->piece;
        if (p >= n) {
            p -= n;
            continue;
        }
        return (struct dt_block){s->blocks[node->ranks[i]].offset + at,
                                 len - at < s->piece ? len - at : s->piece};
    }
    return (struct dt_block){0, 0};
}

/* Shard j of a piece, in bytes. */
static struct dt_block shard(const struct scatter *s, struct dt_block whole,
                             size_t j)
{
    size_t unit = DT_CUT_BYTES / s->elem;
    if (j >= s->nshards)
        return (struct dt_block){whole.offset, 0};
    struct dt_part part =
        dt_part_unit(whole.len / s->elem, s->nshards, j, unit);
    return (struct dt_block){whole.offset + part.first * s->elem,
                             part.count * s->elem};
}

/* What was folded for the node at a distance, or came from the one there. */
static struct dt_ref slot(const struct scatter *s, size_t p, size_t distance,
                          bool came)
{
    size_t n = s->layout->nnodes;
    size_t place = (p % WINDOW * n + distance) * 2 + came;
    return dt_ref(DT_SPACE_SCRATCH, place * s->room);
}

/* Step 1, for one node. */
static size_t collect(const struct scatter *s, size_t p, size_t distance)
{
    struct dt_sched *sched = s->plan->sched;
    struct dt_block whole = piece(s, node_at(s, distance), p);
    struct dt_block own = shard(s, whole, s->node->index);
    struct dt_ref send = dt_ref(DT_SPACE_SEND, own.offset);
    struct dt_ref sum = slot(s, p, distance, false);
    size_t free = s->free[p % WINDOW], operation;
    if (!whole.len)
        return DT_OPERATION_NONE;
    if (s->node->size == 1) {
        operation = dt_sched_copy(sched, sum, send, own.len);
    } else {
        uint32_t round = dt_sched_round(sched);
        size_t at = own.offset - whole.offset;
        size_t post =
            dt_sched_post(sched, round, dt_ref(DT_SPACE_SEND, whole.offset),
                          whole.len, at, own.len);
        dt_sched_after(sched, post, free);
        operation =
            dt_sched_reduce_round(sched, round, sum, send, at, own.len, 1);
    }
    dt_sched_after(sched, operation, free);
    return operation;
}

/* Step 2. */
static void meet(struct scatter *s, size_t p)
{
    struct dt_sched *sched = s->plan->sched;
    size_t n = s->layout->nnodes, j = s->node->index;
    struct dt_block own = shard(s, piece(s, s->node, p), j);
    struct dt_ref sum = slot(s, p, 0, false);
    size_t after = s->sums[0], sends = sched->noperations;
    for (size_t d = 1; d < n && j < s->nshards; d++) {
        struct dt_block theirs = shard(s, piece(s, node_at(s, d), p), j);
        size_t sent = dt_sched_send(sched, node_at(s, d)->ranks[j],
                                    slot(s, p, d, false), theirs.len);
        dt_sched_after(sched, sent, s->sums[d]);
    }
    size_t all = dt_sched_join(sched, sends);
    for (size_t d = 1; d < n && own.len; d++) {
        struct dt_ref came = slot(s, p, d, true);
        size_t got =
            dt_sched_recv(sched, node_at(s, n - d)->ranks[j], came, own.len);
        dt_sched_after(sched, got, s->free[p % WINDOW]);
        size_t add = dt_sched_reduce(sched, sum, sum, came, own.len);
        dt_sched_after(sched, add, got);
        dt_sched_after(sched, add, after);
        after = add;
    }
    if (s->plan->shape->op == DT_OP_AVG && own.len) {
        size_t divide = dt_sched_divide(sched, sum, own.len);
        dt_sched_after(sched, divide, after);
        after = divide;
    }
    s->ready[p % WINDOW] = after;
    dt_sched_after(sched, all, after);
    dt_sched_after(sched, all, s->free[p % WINDOW]);
    s->free[p % WINDOW] = all;
}

/* Step 3. */
static void arrive(struct scatter *s, size_t p)
{
    struct dt_sched *sched = s->plan->sched;
    size_t me = s->node->index, first = sched->noperations;
    struct dt_block whole = piece(s, s->node, p);
    struct dt_block mine = s->blocks[s->layout->rank];
    struct dt_block own = shard(s, whole, me);
    uint32_t round = 0;
    if (!whole.len)
        return;
    if (s->node->size > 1) {
        round = dt_sched_round(sched);
        if (own.len)
            dt_sched_after(sched,
                           dt_sched_post(sched, round, slot(s, p, 0, false),
                                         own.len, 0, 0),
                           s->ready[p % WINDOW]);
    }
    for (size_t k = 0; k < s->node->size; k++) {
        size_t j = (me + k) % s->node->size;
        struct dt_block part = shard(s, whole, j);
        size_t begin = dt_at_least(part.offset, mine.offset);
        size_t end = part.offset + part.len;
        if (end > mine.offset + mine.len)
            end = mine.offset + mine.len;
        if (begin >= end)
            continue;
        struct dt_ref dst = dt_ref(DT_SPACE_RECV, begin - mine.offset);
        struct dt_ref sum = slot(s, p, 0, false);
        sum.offset += begin - part.offset;
        if (j != me)
            dt_sched_fetch(sched, round, j, dst, begin - part.offset,
                           end - begin);
        else
            dt_sched_after(sched, dt_sched_copy(sched, dst, sum, end - begin),
                           s->ready[p % WINDOW]);
    }
    size_t done = dt_sched_join(sched, first);
    dt_sched_after(sched, done, s->free[p % WINDOW]);
    s->free[p % WINDOW] = done;
}

static struct scatter prepare(const struct dt_plan *plan)
{
    size_t elem = dt_dtype_size(plan->shape->dtype);
    size_t n = plan->layout->nnodes;
    struct scatter s = {.plan = plan,
                        .layout = plan->layout,
                        .node = dt_layout_node(plan->layout),
                        .elem = elem,
                        .piece = dt_cut_most(plan)};
    s.nshards = dt_cut_shards(plan, s.piece);
    size_t most = dt_at_least(SCRATCH / (2 * WINDOW * n), 4096) * s.nshards;
    if (s.piece > most)
        s.piece = most;
    s.piece -= s.piece % elem;
    s.room = shard(&s, (struct dt_block){0, s.piece}, 0).len;
    for (size_t i = 0; i < WINDOW; i++)
        s.ready[i] = s.free[i] = DT_OPERATION_NONE;
    return s;
}

static size_t most_pieces(const struct scatter *s)
{
    size_t most = 0;
    for (size_t d = 0; d < s->layout->nnodes; d++) {
        const struct dt_group *node = node_at(s, d);
        size_t pieces = 0;
        for (size_t i = 0, len; i < node->size;) {
            i = dt_blocks_run(s->blocks, node->ranks, i, node->size, &len);
            pieces += dt_ceiling(len, s->piece);
        }
        most = dt_at_least(most, pieces);
    }
    return most;
}

static void build(const struct dt_plan *plan)
{
    struct scatter s = prepare(plan);
    size_t n = s.layout->nnodes, pieces;
    s.blocks =
        dt_blocks(plan, plan->shape->recvcounts, plan->shape->senddispls);
    s.sums = calloc(n, sizeof(*s.sums));
    if (!s.blocks || !s.sums) {
        plan->sched->failed = true;
        goto free;
    }
    plan->sched->scratch = WINDOW * 2 * n * s.room;
    pieces = most_pieces(&s);
    for (size_t p = 0; p < pieces + WINDOW; p++) {
        if (p >= WINDOW && p - WINDOW < pieces)
            arrive(&s, p - WINDOW);
        if (p >= pieces)
            continue;
        for (size_t d = 0; d < n; d++)
            s.sums[d] = collect(&s, p, d);
        meet(&s, p);
    }

free:
    free(s.blocks);
    free(s.sums);
}

/* It is the only one. */
static double cost(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    return tune->net_latency + 2 * tune->node_latency;
}

const struct dt_algorithm dt_reduce_scatter_table[] = {
    {"pairwise", cost, build, 0},
    {NULL, NULL, NULL, 0},
};
