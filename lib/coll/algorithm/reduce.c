/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* reduce.c - two-level reduction to one rank.
 *
 *   1. every rank posts its piece; local rank j reduces shard j of it
 *   2. shard j goes up a tree of the nodes along rail j; the root's node is
 *      the root of the tree
 *   3. there, local rank j posts shard j, and the root fetches it
 *
 * A single shard goes to the root itself. Sums are in scratch space, in slots
 * that take turns. Step 1 of a piece writes to a slot only when the root has
 * read it: all wait for the root's post, and that for its fetch. */
#include <math.h>

#include "coll/algorithm/cut.h"
#include "coll/algorithm/rail.h"
#include "coll/algorithm/tree.h"

#define WINDOW 4 /* slots */

struct reduce {
    const struct dt_plan *plan;
    const struct dt_group *node;
    struct dt_cut cut;
    size_t root_node;
    bool at_root; /* this node is the root's */
    size_t ntrees;
    struct dt_tree trees[2];
    size_t room;  /* elements of a shard, at most */
    size_t width; /* of them in a slot: the sum, and what children send */
    /* per slot: the operation after which it is complete, and after which it is
     * free */
    size_t ready[WINDOW], free[WINDOW];
};

static struct reduce prepare(const struct dt_plan *plan)
{
    enum dt_tree_kind kind = plan->algorithm->variant;
    const struct dt_layout *layout = plan->layout;
    struct reduce r = {
        .plan = plan,
        .node = dt_layout_node(layout),
        .cut = dt_cut(plan, plan->shape->count, SIZE_MAX),
        .root_node = layout->node_of[plan->shape->root],
        .ntrees = kind == DT_TREE_FIRST ? 2 : 1,
        .width = 1,
    };
    size_t n = layout->nnodes;
    r.at_root = layout->node == r.root_node;
    for (size_t t = 0; t < r.ntrees; t++) {
        r.trees[t] = dt_tree(t ? DT_TREE_SECOND : kind, n,
                             (layout->node + n - r.root_node) % n);
        r.width += r.trees[t].nchildren;
    }
    if (r.cut.n)
        r.room = dt_cut_shard(&r.cut, dt_cut_piece(&r.cut, 0), 0).count;
    for (size_t i = 0; i < WINDOW; i++)
        r.ready[i] = r.free[i] = DT_OPERATION_NONE;
    return r;
}

/* The local rank that has shard j on a node. */
static size_t owner(const struct reduce *r, size_t node, size_t j)
{
    const struct dt_layout *layout = r->plan->layout;
    if (node == r->root_node && r->cut.nshards == 1)
        return layout->local_of[r->plan->shape->root];
    return j;
}

static size_t peer(const struct reduce *r, size_t place, size_t j)
{
    const struct dt_layout *layout = r->plan->layout;
    size_t node = (place + r->root_node) % layout->nnodes;
    return layout->nodes[node].ranks[owner(r, node, j)];
}

/* The number of this rank's shard; nshards: none. */
static size_t mine(const struct reduce *r)
{
    for (size_t j = 0; j < r->cut.nshards; j++)
        if (owner(r, r->plan->layout->node, j) == r->node->index)
            return j;
    return r->cut.nshards;
}

/* Part number part of slot i % WINDOW. */
static struct dt_ref slot(const struct reduce *r, size_t i, size_t part,
                          size_t first)
{
    size_t element = (i % WINDOW * r->width + part) * r->room + first;
    return dt_ref(DT_SPACE_SCRATCH, element * r->cut.elem);
}

static struct dt_ref in(const struct reduce *r, struct dt_part part)
{
    return dt_ref(DT_SPACE_SEND, part.first * r->cut.elem);
}

static struct dt_ref out(const struct reduce *r, struct dt_part part)
{
    return dt_ref(DT_SPACE_RECV, part.first * r->cut.elem);
}

static bool is_root(const struct reduce *r)
{
    return r->plan->layout->rank == r->plan->shape->root;
}

/* Step 1. */
static size_t collect(const struct reduce *r, size_t i)
{
    struct dt_sched *sched = r->plan->sched;
    struct dt_part piece = dt_cut_piece(&r->cut, i);
    struct dt_part own = dt_cut_shard(&r->cut, piece, mine(r));
    size_t len = own.count * r->cut.elem, sum;
    size_t free = r->free[i % WINDOW];
    if (r->node->size == 1) {
        sum = dt_sched_copy(sched, slot(r, i, 0, 0), in(r, own), len);
    } else {
        size_t at = (own.first - piece.first) * r->cut.elem;
        uint32_t round = dt_sched_round(sched);
        size_t post = dt_sched_post(sched, round, in(r, piece),
                                    piece.count * r->cut.elem, at, len);
        if (is_root(r))
            dt_sched_after(sched, post, free);
        sum = dt_sched_reduce_round(sched, round, slot(r, i, 0, 0), in(r, own),
                                    at, len, 1);
    }
    dt_sched_after(sched, sum, free);
    return sum;
}

/* Step 2 in one tree, for some elements of the shard; part is the first of
 * the slot for what children send. Returns the operation after which the slot
 * holds the sum of all below, or, with a parent, is free. */
static size_t climb(const struct reduce *r, const struct dt_tree *tree,
                    size_t i, size_t part, struct dt_part some, size_t after)
{
    struct dt_sched *sched = r->plan->sched;
    size_t len = some.count * r->cut.elem, j = mine(r);
    struct dt_ref sum = slot(r, i, 0, some.first);
    for (size_t k = 0; k < tree->nchildren; k++) {
        struct dt_ref theirs = slot(r, i, part + k, 0);
        size_t got =
            dt_sched_recv(sched, peer(r, tree->children[k], j), theirs, len);
        dt_sched_after(sched, got, r->free[i % WINDOW]);
        size_t add = dt_sched_reduce(sched, sum, sum, theirs, len);
        dt_sched_after(sched, add, got);
        dt_sched_after(sched, add, after);
        after = add;
    }
    if (r->at_root)
        return after;
    size_t sent = dt_sched_send(sched, peer(r, tree->parent, j), sum, len);
    dt_sched_after(sched, sent, after);
    return sent;
}

static void meet(struct reduce *r, size_t i, size_t sum)
{
    struct dt_sched *sched = r->plan->sched;
    struct dt_part own =
        dt_cut_shard(&r->cut, dt_cut_piece(&r->cut, i), mine(r));
    size_t ends[2] = {sum, sum}, part = 1;
    for (size_t t = 0; own.count && t < r->ntrees; t++) {
        struct dt_part some = dt_part(own.count, r->ntrees, t);
        ends[t] = climb(r, &r->trees[t], i, part, some, sum);
        part += r->trees[t].nchildren;
    }
    size_t both = dt_sched_join(sched, sched->noperations);
    for (size_t t = 0; t < r->ntrees; t++)
        dt_sched_after(sched, both, ends[t]);
    dt_sched_after(sched, both, sum);
    dt_sched_after(sched, both, r->free[i % WINDOW]);
    if (r->at_root && r->plan->shape->op == DT_OP_AVG) {
        size_t divide =
            dt_sched_divide(sched, slot(r, i, 0, 0), own.count * r->cut.elem);
        dt_sched_after(sched, divide, both);
        both = own.count ? divide : both;
    }
    r->ready[i % WINDOW] = r->free[i % WINDOW] = both;
}

/* Step 3. */
static void arrive(struct reduce *r, size_t i)
{
    struct dt_sched *sched = r->plan->sched;
    struct dt_part piece = dt_cut_piece(&r->cut, i);
    struct dt_part own = dt_cut_shard(&r->cut, piece, mine(r));
    size_t first = sched->noperations, len = own.count * r->cut.elem;
    size_t ready = r->ready[i % WINDOW];
    uint32_t round = r->cut.nshards > 1 ? dt_sched_round(sched) : 0;
    if (!is_root(r)) {
        if (len)
            dt_sched_after(
                sched, dt_sched_post(sched, round, slot(r, i, 0, 0), len, 0, 0),
                ready);
        return;
    }
    dt_sched_after(
        sched, dt_sched_copy(sched, out(r, own), slot(r, i, 0, 0), len), ready);
    for (size_t j = 0; r->cut.nshards > 1 && j < r->cut.nshards; j++) {
        struct dt_part part = dt_cut_shard(&r->cut, piece, j);
        if (j != r->node->index && part.count)
            dt_sched_fetch(sched, round, j, out(r, part), 0,
                           part.count * r->cut.elem);
    }
    size_t end = dt_sched_join(sched, first);
    dt_sched_after(sched, end, ready);
    r->free[i % WINDOW] = end;
}

static void build(const struct dt_plan *plan)
{
    struct reduce r = prepare(plan);
    plan->sched->scratch = WINDOW * r.width * r.room * r.cut.elem;
    for (size_t i = 0; i < r.cut.n + WINDOW; i++) {
        if (i >= WINDOW && i - WINDOW < r.cut.n && r.at_root)
            arrive(&r, i - WINDOW);
        if (i < r.cut.n)
            meet(&r, i, collect(&r, i));
    }
}

static double cost(const struct dt_plan *plan)
{
    enum dt_tree_kind kind = plan->algorithm->variant;
    const struct dt_tune *tune = plan->tune;
    const struct reduce r = prepare(plan);
    size_t nodes = plan->layout->nnodes;
    double n = (double)nodes, log = (double)dt_log_two(nodes);
    double pieces = (double)dt_at_least(r.cut.n, 1);
    double shards = (double)r.cut.nshards;
    double bytes = (double)plan->shape->count * (double)r.cut.elem;
    double ranks = (double)plan->layout->size / n;
    double node =
        bytes * (2 * tune->node_byte + ranks / shards * tune->fold_byte) +
        pieces * (2 + shards) * tune->task + 2 * tune->node_latency;
    if (nodes == 1)
        return kind == DT_TREE_BINOMIAL ? node : INFINITY;
    double sent = bytes / pieces / shards * (tune->net_byte + tune->fold_byte) +
                  4 * tune->task;
    double depth = kind == DT_TREE_CHAIN ? n - 1 : log + 1;
    double each = kind == DT_TREE_BINOMIAL ? (log + 1) * sent : sent;
    double net = (pieces - 1) * each + depth * (tune->net_latency + sent);
    return net > node ? net + node / pieces : node + net / pieces;
}

const struct dt_algorithm dt_reduce_table[] = {
    {"binomial", cost, build, DT_TREE_BINOMIAL},
    {"chain", cost, build, DT_TREE_CHAIN},
    {"trees", cost, build, DT_TREE_FIRST},
    {NULL, NULL, NULL, 0},
};
