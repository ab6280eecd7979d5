/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bcast.c - two-level broadcast. Pieces follow each other through a tree of
 * the nodes, shard j of each along rail j, and through one round of each node:
 * where the root is, it posts the piece before the shards leave; elsewhere
 * local rank j posts shard j when it has come. A single shard leaves from the
 * root itself. */
#include <math.h>

#include "coll/algorithm/cut.h"
#include "coll/algorithm/rail.h"
#include "coll/algorithm/tree.h"

#define WINDOW 8 /* pieces between the nodes at once */

struct bcast {
    const struct dt_plan *plan;
    const struct dt_group *node;
    struct dt_cut cut;
    size_t root_node;
    bool at_root; /* this node is the root's */
    enum dt_tree_kind kinds[2];
    size_t ntrees;
    struct dt_tree trees[2];
    size_t ends[WINDOW];
};

static struct bcast prepare(const struct dt_plan *plan)
{
    enum dt_tree_kind kind = plan->algorithm->variant;
    const struct dt_layout *layout = plan->layout;
    struct bcast b = {
        .plan = plan,
        .node = dt_layout_node(layout),
        .cut = dt_cut(plan, plan->shape->count, SIZE_MAX),
        .root_node = layout->node_of[plan->shape->root],
        .kinds = {kind, DT_TREE_SECOND},
        .ntrees = kind == DT_TREE_FIRST ? 2 : 1,
    };
    b.at_root = layout->node == b.root_node;
    size_t n = layout->nnodes;
    for (size_t t = 0; t < b.ntrees; t++)
        b.trees[t] =
            dt_tree(b.kinds[t], n, (layout->node + n - b.root_node) % n);
    return b;
}

static struct dt_ref at(const struct bcast *b, struct dt_part part)
{
    return dt_ref(DT_SPACE_RECV, part.first * b->cut.elem);
}

/* The local rank that has shard j on a node. */
static size_t owner(const struct bcast *b, size_t node, size_t j)
{
    const struct dt_layout *layout = b->plan->layout;
    if (node == b->root_node && b->cut.nshards == 1)
        return layout->local_of[b->plan->shape->root];
    return j;
}

/* The rank with shard j at a place of the trees. */
static size_t peer(const struct bcast *b, size_t place, size_t j)
{
    const struct dt_layout *layout = b->plan->layout;
    size_t node = (place + b->root_node) % layout->nnodes;
    return layout->nodes[node].ranks[owner(b, node, j)];
}

/* Shard j through one tree; returns the operation after which it is here. */
static size_t pass_on(const struct bcast *b, const struct dt_tree *tree,
                      struct dt_part part, size_t j, size_t ready)
{
    struct dt_sched *sched = b->plan->sched;
    size_t len = part.count * b->cut.elem;
    if (!b->at_root)
        ready =
            dt_sched_recv(sched, peer(b, tree->parent, j), at(b, part), len);
    for (size_t i = 0; i < tree->nchildren; i++)
        dt_sched_after(sched,
                       dt_sched_send(sched, peer(b, tree->children[i], j),
                                     at(b, part), len),
                       ready);
    return ready;
}

/* Between the nodes; the same return value, of the whole shard. */
static size_t travel(struct bcast *b, size_t i, struct dt_part shard, size_t j,
                     size_t ready)
{
    struct dt_sched *sched = b->plan->sched;
    size_t first = sched->noperations, *end = &b->ends[i % WINDOW], here[2];
    sched->gate = i < WINDOW ? DT_OPERATION_NONE : *end;
    for (size_t t = 0; t < b->ntrees; t++) {
        struct dt_part part = dt_part(shard.count, b->ntrees, t);
        part.first += shard.first;
        here[t] = pass_on(b, &b->trees[t], part, j, ready);
    }
    *end = dt_sched_join(sched, first);
    sched->gate = DT_OPERATION_NONE;
    if (b->ntrees == 1)
        return here[0];
    size_t both = dt_sched_join(sched, sched->noperations);
    dt_sched_after(sched, both, here[0]);
    dt_sched_after(sched, both, here[1]);
    return both;
}

/* Where the root is. */
static void leave(struct bcast *b, size_t i)
{
    struct dt_sched *sched = b->plan->sched;
    struct dt_part piece = dt_cut_piece(&b->cut, i);
    size_t me = b->node->index, len = piece.count * b->cut.elem;
    size_t root = b->plan->layout->local_of[b->plan->shape->root];
    size_t ready = DT_OPERATION_NONE;
    if (b->node->size > 1) {
        uint32_t round = dt_sched_round(sched);
        if (me == root)
            dt_sched_post(sched, round, at(b, piece), len, 0, 0);
        else
            ready = dt_sched_fetch(sched, round, root, at(b, piece), 0, len);
    }
    for (size_t j = 0; j < b->cut.nshards; j++)
        if (b->plan->layout->nnodes > 1 && owner(b, b->root_node, j) == me)
            travel(b, i, dt_cut_shard(&b->cut, piece, j), j, ready);
}

/* Elsewhere. */
static void arrive(struct bcast *b, size_t i)
{
    struct dt_sched *sched = b->plan->sched;
    struct dt_part piece = dt_cut_piece(&b->cut, i);
    size_t me = b->node->index, elem = b->cut.elem, ready = DT_OPERATION_NONE;
    struct dt_part own = dt_cut_shard(&b->cut, piece, me);
    if (own.count)
        ready = travel(b, i, own, me, DT_OPERATION_NONE);
    if (b->node->size == 1)
        return;
    uint32_t round = dt_sched_round(sched);
    if (own.count)
        dt_sched_after(
            sched,
            dt_sched_post(sched, round, at(b, own), own.count * elem, 0, 0),
            ready);
    for (size_t k = 1; k < b->node->size; k++) {
        size_t local = (me + k) % b->node->size;
        struct dt_part part = dt_cut_shard(&b->cut, piece, local);
        if (part.count)
            dt_sched_fetch(sched, round, local, at(b, part), 0,
                           part.count * elem);
    }
}

static void build(const struct dt_plan *plan)
{
    struct bcast b = prepare(plan);
    for (size_t i = 0; i < b.cut.n && plan->layout->size > 1; i++)
        if (b.at_root)
            leave(&b, i);
        else
            arrive(&b, i);
}

static double cost(const struct dt_plan *plan)
{
    enum dt_tree_kind kind = plan->algorithm->variant;
    const struct dt_tune *tune = plan->tune;
    const struct bcast b = prepare(plan);
    double n = (double)plan->layout->nnodes,
           pieces = (double)dt_at_least(b.cut.n, 1);
    double log = (double)dt_log_two(plan->layout->nnodes);
    double bytes = (double)plan->shape->count * (double)b.cut.elem;
    double shard = bytes / pieces / (double)b.cut.nshards;
    double sent = shard * tune->net_byte + 4 * tune->task;
    double depth = kind == DT_TREE_CHAIN ? n - 1 : log + 1;
    if (plan->layout->nnodes == 1)
        return kind == DT_TREE_BINOMIAL
                   ? tune->node_latency + 2 * bytes * tune->node_byte
                   : INFINITY;
    double each = kind == DT_TREE_BINOMIAL ? (log + 1) * sent : sent;
    double node = bytes * 2 * tune->node_byte +
                  pieces * (2 + (double)b.cut.nshards) * tune->task;
    double net = (pieces - 1) * each + depth * (tune->net_latency + sent);
    return 2 * tune->node_latency +
           (net > node ? net + node / pieces : node + net / pieces);
}

const struct dt_algorithm dt_bcast_table[] = {
    {"binomial", cost, build, DT_TREE_BINOMIAL},
    {"chain", cost, build, DT_TREE_CHAIN},
    {"trees", cost, build, DT_TREE_FIRST},
    {NULL, NULL, NULL, 0},
};
