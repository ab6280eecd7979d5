/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* allgather.c - two algorithms that give the blocks of all ranks to all ranks.
 *
 * ring: after one exchange in the node, the blocks of whole nodes go round the
 * ring of the nodes, that of local rank j along rail j (ranks beyond the rails
 * are shared out among them); what arrives is posted for the others of the
 * node. Blocks go in pieces, so a block is on its way to the next node before
 * all of it is here.
 *
 * bruck: the leader fetches the blocks of its node; the leaders exchange ever
 * more of them at distance 1, 2, 4 ... (Bruck et al. 1997, "Efficient
 * algorithms for all-to-all communications in multiport message-passing
 * systems"); then each posts all. */
#include <math.h>
#include <stdlib.h>

#include "coll/algorithm/blocks.h"
#include "coll/algorithm/cut.h"
#include "coll/algorithm/rail.h"

#define WINDOW 16 /* receives at once */

struct gather {
    const struct dt_plan *plan;
    const struct dt_layout *layout;
    const struct dt_group *node;
    struct dt_block *blocks; /* of the receive buffer */
    size_t piece;            /* bytes, at most */
    size_t *have;            /* per piece my rail passes on next: it is here */
    size_t got[WINDOW], ngot;
};

static struct dt_ref at(const struct gather *g, size_t rank, size_t piece)
{
    return dt_ref(DT_SPACE_RECV, g->blocks[rank].offset + piece * g->piece);
}

static size_t pieces(const struct gather *g, size_t rank)
{
    return dt_ceiling(g->blocks[rank].len, g->piece);
}

static size_t piece_len(const struct gather *g, size_t rank, size_t piece)
{
    size_t len = g->blocks[rank].len, first = piece * g->piece;
    if (first >= len)
        return 0;
    return len - first < g->piece ? len - first : g->piece;
}

/* The most pieces of a block among n local ranks from first on. */
static size_t most_pieces(const struct gather *g, const struct dt_group *node,
                          size_t first, size_t n)
{
    size_t most = 0;
    for (size_t i = first; i < node->size && i < first + n; i++)
        most = dt_at_least(most, pieces(g, node->ranks[i]));
    return most;
}

/* One round, in which each local rank j < n posts a piece of the block of rank
 * first + j of a node, its own one when ready is done. */
struct share {
    const struct dt_group *from; /* that node */
    size_t first, n, piece;
    size_t ready;
    size_t *fetched; /* NULL, or per j: the operation that gets it */
};

static void share(const struct gather *g, const struct share *s)
{
    struct dt_sched *sched = g->plan->sched;
    size_t me = g->node->index;
    if (g->node->size == 1)
        return;
    uint32_t round = dt_sched_round(sched);
    for (size_t k = 0; k < g->node->size; k++) {
        size_t j = (me + k) % g->node->size;
        if (j >= s->n || s->first + j >= s->from->size)
            continue;
        size_t rank = s->from->ranks[s->first + j];
        size_t len = piece_len(g, rank, s->piece), operation;
        if (!len)
            continue;
        struct dt_ref piece = at(g, rank, s->piece);
        if (j == me) {
            operation = dt_sched_post(sched, round, piece, len, 0, 0);
            dt_sched_after(sched, operation, s->ready);
        } else {
            operation = dt_sched_fetch(sched, round, j, piece, 0, len);
        }
        if (s->fetched)
            s->fetched[j] = operation;
    }
}

/* Exchange the blocks inside the node. g->have then has the operations after
 * which the blocks of this rail are here. */
static void gather_node(struct gather *g)
{
    struct dt_sched *sched = g->plan->sched;
    size_t n = g->node->size, rank = g->layout->rank, ready = DT_OPERATION_NONE;
    size_t most = most_pieces(g, g->node, 0, n), k = 0;
    size_t *fetched = calloc(n * most + 1, sizeof(*fetched));
    if (!fetched) {
        sched->failed = true;
        return;
    }
    if (!g->plan->shape->in_place)
        ready = dt_sched_copy(sched, at(g, rank, 0), dt_ref(DT_SPACE_SEND, 0),
                              g->blocks[rank].len);
    for (size_t p = 0; p < most; p++)
        share(g, &(struct share){g->node, 0, n, p, ready, fetched + p * n});
    for (size_t i = g->node->index; g->node->index < g->layout->nrails && i < n;
         i += g->layout->nrails)
        for (size_t p = 0; p < pieces(g, g->node->ranks[i]); p++)
            g->have[k++] = i == g->node->index ? ready : fetched[p * n + i];
    free(fetched);
}

/* A piece of a rank of another node, along my rail; returns the operation after
 * which it is here. */
static size_t pass_on(struct gather *g, const struct dt_group *from,
                      size_t local, size_t piece)
{
    struct dt_sched *sched = g->plan->sched;
    size_t n = g->layout->nnodes, rank = from->ranks[local];
    size_t prev = (g->layout->node + n - 1) % n;
    size_t *got = &g->got[g->ngot++ % WINDOW];
    size_t operation =
        dt_sched_recv(sched, g->layout->nodes[prev].ranks[g->node->index],
                      at(g, rank, piece), piece_len(g, rank, piece));
    dt_sched_after(sched, operation, *got);
    *got = operation;
    return operation;
}

/* The blocks of a node leave for the next one. */
static void send_node(const struct gather *g, const struct dt_group *from)
{
    struct dt_sched *sched = g->plan->sched;
    size_t n = g->layout->nnodes, k = 0;
    size_t next = (g->layout->node + 1) % n;
    for (size_t i = g->node->index; i < from->size; i += g->layout->nrails)
        for (size_t p = 0; p < pieces(g, from->ranks[i]); p++)
            dt_sched_after(
                sched,
                dt_sched_send(
                    sched, g->layout->nodes[next].ranks[g->node->index],
                    at(g, from->ranks[i], p), piece_len(g, from->ranks[i], p)),
                g->have[k++]);
}

/* Those of another come from the one before, and are shared. */
static void take_node(struct gather *g, const struct dt_group *from)
{
    size_t nrails = g->layout->nrails, me = g->node->index, k = 0;
    for (size_t first = 0; first < from->size; first += nrails) {
        size_t most = most_pieces(g, from, first, nrails);
        for (size_t p = 0; p < most; p++) {
            size_t ready = DT_OPERATION_NONE;
            if (me < nrails && first + me < from->size &&
                p < pieces(g, from->ranks[first + me]))
                ready = g->have[k++] = pass_on(g, from, first + me, p);
            share(g, &(struct share){from, first, nrails, p, ready, NULL});
        }
    }
}

/* In step s a node passes on those of node me - s. */
static void build_ring(const struct dt_plan *plan)
{
    const struct dt_layout *layout = plan->layout;
    struct gather g = {.plan = plan,
                       .layout = layout,
                       .node = dt_layout_node(layout),
                       .piece = dt_cut_most(plan)};
    size_t n = layout->nnodes, me = layout->node, most = 0;
    g.blocks =
        dt_blocks(plan, plan->shape->sendcounts, plan->shape->recvdispls);
    for (size_t i = 0; i < WINDOW; i++)
        g.got[i] = DT_OPERATION_NONE;
    for (size_t i = 0; g.blocks && i < n; i++) {
        size_t all = 0;
        for (size_t k = 0; k < layout->nodes[i].size; k++)
            all += pieces(&g, layout->nodes[i].ranks[k]);
        most = dt_at_least(most, all);
    }
    g.have = calloc(most + 1, sizeof(*g.have));
    if (!g.blocks || !g.have) {
        plan->sched->failed = true;
        goto free;
    }
    gather_node(&g);
    for (size_t s = 0; s + 1 < n; s++) {
        if (g.node->index < layout->nrails)
            send_node(&g, &layout->nodes[(me + n - s) % n]);
        take_node(&g, &layout->nodes[(me + 2 * n - s - 1) % n]);
    }

free:
    free(g.blocks);
    free(g.have);
}

/* ---- bruck ---- */

struct bruck {
    const struct dt_plan *plan;
    const struct dt_layout *layout;
    const struct dt_group *node;
    struct dt_block *blocks;
    size_t *start; /* bytes of the nodes before place i; place 0 is mine */
};

/* The node at a place. */
static const struct dt_group *node_at(const struct bruck *b, size_t place)
{
    return &b->layout->nodes[(b->layout->node + place) % b->layout->nnodes];
}

/* The leader fetches all of its node; returns the operation that ends it. */
static size_t collect(const struct bruck *b)
{
    struct dt_sched *sched = b->plan->sched;
    size_t first = sched->noperations, offset = 0;
    size_t piece = dt_cut_most(b->plan), most = 0;
    for (size_t i = 0; i < b->node->size; i++)
        most = dt_at_least(most, b->blocks[b->node->ranks[i]].len);
    for (size_t i = 0; i < b->node->size; i++) {
        size_t len = b->blocks[b->node->ranks[i]].len;
        if (i == b->node->index && b->node->index == 0)
            dt_sched_copy(sched, dt_ref(DT_SPACE_SCRATCH, offset),
                          dt_ref(DT_SPACE_SEND, 0), len);
        offset += len;
    }
    for (size_t p = 0; b->node->size > 1 && p < dt_ceiling(most, piece); p++) {
        uint32_t round = dt_sched_round(sched);
        offset = 0;
        for (size_t i = 0; i < b->node->size; i++) {
            size_t len = b->blocks[b->node->ranks[i]].len;
            size_t left = len > p * piece ? len - p * piece : 0;
            left = left < piece ? left : piece;
            if (b->node->index && i == b->node->index && left)
                dt_sched_post(sched, round, dt_ref(DT_SPACE_SEND, p * piece),
                              left, 0, 0);
            if (!b->node->index && i && left)
                dt_sched_fetch(sched, round, i,
                               dt_ref(DT_SPACE_SCRATCH, offset + p * piece), 0,
                               left);
            offset += len;
        }
    }
    return dt_sched_join(sched, first);
}

/* The exchange between the leaders; returns the operation after which all
 * blocks are here. */
static size_t exchange(const struct bruck *b, size_t ready)
{
    struct dt_sched *sched = b->plan->sched;
    size_t n = b->layout->nnodes, me = b->layout->node;
    for (size_t d = 1; d < n; d *= 2) {
        size_t count = d < n - d ? d : n - d;
        size_t sent =
            dt_sched_send(sched, b->layout->leaders.ranks[(me + n - d) % n],
                          dt_ref(DT_SPACE_SCRATCH, 0), b->start[count]);
        dt_sched_after(sched, sent, ready);
        size_t got =
            dt_sched_recv(sched, b->layout->leaders.ranks[(me + d) % n],
                          dt_ref(DT_SPACE_SCRATCH, b->start[d]),
                          b->start[d + count] - b->start[d]);
        size_t both = dt_sched_join(sched, sched->noperations);
        dt_sched_after(sched, both, got);
        dt_sched_after(sched, both, ready);
        ready = both;
    }
    return ready;
}

/* The part of a run of blocks that is in a piece of what the leader has. */
static void put(const struct bruck *b, uint32_t round, struct dt_block piece,
                size_t from, struct dt_block run, size_t ready)
{
    struct dt_sched *sched = b->plan->sched;
    size_t first = from > piece.offset ? from : piece.offset;
    size_t end = from + run.len;
    if (end > piece.offset + piece.len)
        end = piece.offset + piece.len;
    if (first >= end)
        return;
    struct dt_ref dst = dt_ref(DT_SPACE_RECV, run.offset + first - from);
    if (b->node->index)
        dt_sched_fetch(sched, round, 0, dst, first - piece.offset, end - first);
    else
        dt_sched_after(sched,
                       dt_sched_copy(sched, dst,
                                     dt_ref(DT_SPACE_SCRATCH, first),
                                     end - first),
                       ready);
}

/* All of one piece to where they belong. */
static void hand_out(const struct bruck *b, uint32_t round,
                     struct dt_block piece, size_t ready)
{
    for (size_t k = 0; k < b->layout->nnodes; k++) {
        const struct dt_group *from = node_at(b, k);
        size_t offset = b->start[k];
        for (size_t i = 0, end, len; i < from->size; i = end) {
            end = dt_blocks_run(b->blocks, from->ranks, i, from->size, &len);
            put(b, round, piece, offset,
                (struct dt_block){b->blocks[from->ranks[i]].offset, len},
                ready);
            offset += len;
        }
    }
}

static void build_bruck(const struct dt_plan *plan)
{
    const struct dt_layout *layout = plan->layout;
    struct bruck b = {
        .plan = plan, .layout = layout, .node = dt_layout_node(layout)};
    size_t n = layout->nnodes, ready;
    b.blocks =
        dt_blocks(plan, plan->shape->sendcounts, plan->shape->recvdispls);
    b.start = calloc(n + 1, sizeof(*b.start));
    if (!b.blocks || !b.start) {
        plan->sched->failed = true;
        goto free;
    }
    for (size_t k = 0; k < n; k++) {
        b.start[k + 1] = b.start[k];
        for (size_t i = 0; i < node_at(&b, k)->size; i++)
            b.start[k + 1] += b.blocks[node_at(&b, k)->ranks[i]].len;
    }
    ready = collect(&b);
    if (!b.node->index) {
        plan->sched->scratch = b.start[n];
        ready = exchange(&b, ready);
    }
    struct dt_block piece = {0, 0};
    for (; piece.offset < b.start[n]; piece.offset += piece.len) {
        size_t left = b.start[n] - piece.offset;
        piece.len = left < dt_cut_most(plan) ? left : dt_cut_most(plan);
        uint32_t round = b.node->size > 1 ? dt_sched_round(plan->sched) : 0;
        if (b.node->size > 1 && !b.node->index)
            dt_sched_after(plan->sched,
                           dt_sched_post(plan->sched, round,
                                         dt_ref(DT_SPACE_SCRATCH, piece.offset),
                                         piece.len, 0, 0),
                           ready);
        hand_out(&b, round, piece, ready);
    }

free:
    free(b.blocks);
    free(b.start);
}

/* ---- costs ---- */

static double total(const struct dt_plan *plan)
{
    double elements = (double)plan->shape->count * (double)plan->layout->size;
    const size_t *counts = plan->shape->sendcounts;
    if (counts)
        elements = 0;
    for (size_t i = 0; counts && i < plan->layout->size; i++)
        elements += (double)counts[i];
    return elements * (double)dt_dtype_size(plan->shape->dtype);
}

static double cost_ring(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    double n = (double)plan->layout->nnodes, bytes = total(plan);
    double ranks = (double)plan->layout->size;
    return (n - 1) * tune->net_latency + 2 * tune->node_latency +
           bytes * (n - 1) / n / (double)plan->layout->nrails * tune->net_byte +
           2 * bytes * tune->node_byte + 3 * ranks * tune->task;
}

static double cost_bruck(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    double bytes = total(plan);
    double steps = (double)dt_log_two(2 * plan->layout->nnodes - 1);
    return steps * (tune->net_latency + 3 * tune->task) +
           2 * tune->node_latency + bytes * tune->net_byte +
           3 * bytes * tune->node_byte +
           2 * (double)plan->layout->size * tune->task;
}

const struct dt_algorithm dt_allgather_table[] = {
    {"ring", cost_ring, build_ring, 0},
    {"bruck", cost_bruck, build_bruck, 0},
    {NULL, NULL, NULL, 0},
};
