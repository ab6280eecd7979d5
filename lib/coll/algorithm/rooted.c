/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rooted.c - two-level broadcast, and reduction to one rank: pieces follow each
 * other through a tree of the nodes, shard j of each along rail j. The root's
 * node is the root of the tree; a single shard leaves from, or goes to, the
 * root itself.
 *
 * Broadcast has one round in each node: where the root is, it posts the piece
 * before the shards leave; elsewhere local rank j posts shard j when it has
 * come. Reduction:
 *
 *   1. every rank posts its piece; local rank j reduces shard j of it
 *   2. shard j goes up the tree
 *   3. at the root, local rank j posts shard j, and the root fetches it
 *
 * Sums are in scratch space, in slots that take turns. Step 1 of a piece writes
 * to a slot only when the root has read it: all wait for the root's post, and
 * that for its fetch. */
#include <math.h>

#include "coll/algorithm/cut.h"
#include "coll/algorithm/rail.h"
#include "coll/algorithm/tree.h"

#define WINDOW 8 /* pieces of a broadcast between the nodes at once */
#define SLOTS  4 /* of a reduction */

struct rooted {
    const struct dt_plan *plan;
    const struct dt_group *node;
    struct dt_cut cut;
    size_t root_node;
    bool at_root; /* this node is the root's */
    size_t ntrees;
    struct dt_tree trees[2];
    size_t ends[WINDOW]; /* of a broadcast */
    /* of a reduction: elements of a shard, at most; of them in a slot: the sum,
     * and what children send */
    size_t room, width;
    /* per slot: the operation after which it is complete, and after which it is
     * free */
    size_t ready[SLOTS], free[SLOTS];
};

static struct rooted prepare(const struct dt_plan *plan)
{
    enum dt_tree_kind kind = plan->algorithm->variant;
    const struct dt_layout *layout = plan->layout;
    struct rooted r = {
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
    for (size_t i = 0; i < SLOTS; i++)
        r.ready[i] = r.free[i] = DT_OPERATION_NONE;
    return r;
}

/* The local rank that has shard j on a node. */
static size_t owner(const struct rooted *r, size_t node, size_t j)
{
    const struct dt_layout *layout = r->plan->layout;
    if (node == r->root_node && r->cut.nshards == 1)
        return layout->local_of[r->plan->shape->root];
    return j;
}

static size_t peer(const struct rooted *r, size_t place, size_t j)
{
    const struct dt_layout *layout = r->plan->layout;
    size_t node = (place + r->root_node) % layout->nnodes;
    return layout->nodes[node].ranks[owner(r, node, j)];
}

/* The number of this rank's shard; nshards: none. */
static size_t mine(const struct rooted *r)
{
    for (size_t j = 0; j < r->cut.nshards; j++)
        if (owner(r, r->plan->layout->node, j) == r->node->index)
            return j;
    return r->cut.nshards;
}

/* Part number part of slot i % SLOTS. */
static struct dt_ref slot(const struct rooted *r, size_t i, size_t part,
                          size_t first)
{
    size_t element = (i % SLOTS * r->width + part) * r->room + first;
    return dt_ref(DT_SPACE_SCRATCH, element * r->cut.elem);
}

static struct dt_ref in(const struct rooted *r, struct dt_part part)
{
    return dt_ref(DT_SPACE_SEND, part.first * r->cut.elem);
}

static struct dt_ref out(const struct rooted *r, struct dt_part part)
{
    return dt_ref(DT_SPACE_RECV, part.first * r->cut.elem);
}

/* ---- broadcast ---- */

/* Shard j through one tree; returns the operation after which it is here. */
static size_t pass_on(const struct rooted *r, const struct dt_tree *tree,
                      struct dt_part part, size_t j, size_t ready)
{
    struct dt_sched *sched = r->plan->sched;
    size_t len = part.count * r->cut.elem;
    if (!r->at_root)
        ready =
            dt_sched_recv(sched, peer(r, tree->parent, j), out(r, part), len);
    for (size_t i = 0; i < tree->nchildren; i++)
        dt_sched_after(sched,
                       dt_sched_send(sched, peer(r, tree->children[i], j),
                                     out(r, part), len),
                       ready);
    return ready;
}

/* Between the nodes; the same return value, of the whole shard. */
static size_t travel(struct rooted *r, size_t i, struct dt_part shard, size_t j,
                     size_t ready)
{
    struct dt_sched *sched = r->plan->sched;
    size_t first = sched->noperations, *end = &r->ends[i % WINDOW], here[2];
    sched->gate = i < WINDOW ? DT_OPERATION_NONE : *end;
    for (size_t t = 0; t < r->ntrees; t++) {
        struct dt_part part = dt_part(shard.count, r->ntrees, t);
        part.first += shard.first;
        here[t] = pass_on(r, &r->trees[t], part, j, ready);
    }
    *end = dt_sched_join(sched, first);
    sched->gate = DT_OPERATION_NONE;
    if (r->ntrees == 1)
        return here[0];
    size_t both = dt_sched_join(sched, sched->noperations);
    dt_sched_after(sched, both, here[0]);
    dt_sched_after(sched, both, here[1]);
    return both;
}

/* Where the root is. */
static void leave(struct rooted *r, size_t i)
{
    struct dt_sched *sched = r->plan->sched;
    struct dt_part piece = dt_cut_piece(&r->cut, i);
    size_t me = r->node->index, len = piece.count * r->cut.elem;
    size_t root = r->plan->layout->local_of[r->plan->shape->root];
    size_t ready = DT_OPERATION_NONE;
    if (r->node->size > 1) {
        uint32_t round = dt_sched_round(sched);
        if (me == root)
            dt_sched_post(sched, round, out(r, piece), len, 0, 0);
        else
            ready = dt_sched_fetch(sched, round, root, out(r, piece), 0, len);
    }
    for (size_t j = 0; j < r->cut.nshards; j++)
        if (r->plan->layout->nnodes > 1 && owner(r, r->root_node, j) == me)
            travel(r, i, dt_cut_shard(&r->cut, piece, j), j, ready);
}

/* Elsewhere. */
static void arrive(struct rooted *r, size_t i)
{
    struct dt_sched *sched = r->plan->sched;
    struct dt_part piece = dt_cut_piece(&r->cut, i);
    size_t me = r->node->index, elem = r->cut.elem, ready = DT_OPERATION_NONE;
    struct dt_part own = dt_cut_shard(&r->cut, piece, me);
    if (own.count)
        ready = travel(r, i, own, me, DT_OPERATION_NONE);
    if (r->node->size == 1)
        return;
    uint32_t round = dt_sched_round(sched);
    if (own.count)
        dt_sched_after(
            sched,
            dt_sched_post(sched, round, out(r, own), own.count * elem, 0, 0),
            ready);
    for (size_t k = 1; k < r->node->size; k++) {
        size_t local = (me + k) % r->node->size;
        struct dt_part part = dt_cut_shard(&r->cut, piece, local);
        if (part.count)
            dt_sched_fetch(sched, round, local, out(r, part), 0,
                           part.count * elem);
    }
}

static void build_bcast(const struct dt_plan *plan)
{
    struct rooted r = prepare(plan);
    for (size_t i = 0; i < r.cut.n && plan->layout->size > 1; i++)
        if (r.at_root)
            leave(&r, i);
        else
            arrive(&r, i);
}

/* ---- reduction ---- */

static bool is_root(const struct rooted *r)
{
    return r->plan->layout->rank == r->plan->shape->root;
}

/* Step 1. */
static size_t collect(const struct rooted *r, size_t i)
{
    struct dt_sched *sched = r->plan->sched;
    struct dt_part piece = dt_cut_piece(&r->cut, i);
    struct dt_part own = dt_cut_shard(&r->cut, piece, mine(r));
    size_t len = own.count * r->cut.elem, sum;
    size_t free = r->free[i % SLOTS];
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
static size_t climb(const struct rooted *r, const struct dt_tree *tree,
                    size_t i, size_t part, struct dt_part some, size_t after)
{
    struct dt_sched *sched = r->plan->sched;
    size_t len = some.count * r->cut.elem, j = mine(r);
    struct dt_ref sum = slot(r, i, 0, some.first);
    for (size_t k = 0; k < tree->nchildren; k++) {
        struct dt_ref theirs = slot(r, i, part + k, 0);
        size_t got =
            dt_sched_recv(sched, peer(r, tree->children[k], j), theirs, len);
        dt_sched_after(sched, got, r->free[i % SLOTS]);
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

static void meet(struct rooted *r, size_t i, size_t sum)
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
    dt_sched_after(sched, both, r->free[i % SLOTS]);
    if (r->at_root && r->plan->shape->op == DT_OP_AVG) {
        size_t divide =
            dt_sched_divide(sched, slot(r, i, 0, 0), own.count * r->cut.elem);
        dt_sched_after(sched, divide, both);
        both = own.count ? divide : both;
    }
    r->ready[i % SLOTS] = r->free[i % SLOTS] = both;
}

/* Step 3. */
static void complete(struct rooted *r, size_t i)
{
    struct dt_sched *sched = r->plan->sched;
    struct dt_part piece = dt_cut_piece(&r->cut, i);
    struct dt_part own = dt_cut_shard(&r->cut, piece, mine(r));
    size_t first = sched->noperations, len = own.count * r->cut.elem;
    size_t ready = r->ready[i % SLOTS];
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
    r->free[i % SLOTS] = end;
}

static void build_reduce(const struct dt_plan *plan)
{
    struct rooted r = prepare(plan);
    plan->sched->scratch = SLOTS * r.width * r.room * r.cut.elem;
    for (size_t i = 0; i < r.cut.n + SLOTS; i++) {
        if (i >= SLOTS && i - SLOTS < r.cut.n && r.at_root)
            complete(&r, i - SLOTS);
        if (i < r.cut.n)
            meet(&r, i, collect(&r, i));
    }
}

/* ---- costs ---- */

/* Of all pieces; node: of the steps in the nodes. byte: of a byte from node to
 * node. */
static double pipeline(const struct rooted *r, double node, double byte)
{
    const struct dt_tune *tune = r->plan->tune;
    enum dt_tree_kind kind = r->plan->algorithm->variant;
    double n = (double)r->plan->layout->nnodes;
    double log = (double)dt_log_two(r->plan->layout->nnodes);
    double pieces = (double)dt_at_least(r->cut.n, 1);
    double bytes = (double)r->cut.count * (double)r->cut.elem;
    double sent =
        bytes / pieces / (double)r->cut.nshards * byte + 4 * tune->task;
    double depth = kind == DT_TREE_CHAIN ? n - 1 : log + 1;
    double each = kind == DT_TREE_BINOMIAL ? (log + 1) * sent : sent;
    double net = (pieces - 1) * each + depth * (tune->net_latency + sent);
    return net > node ? net + node / pieces : node + net / pieces;
}

static double cost_bcast(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct rooted r = prepare(plan);
    double bytes = (double)plan->shape->count * (double)r.cut.elem;
    double pieces = (double)dt_at_least(r.cut.n, 1);
    if (plan->layout->nnodes == 1)
        return plan->algorithm->variant == DT_TREE_BINOMIAL
                   ? tune->node_latency + 2 * bytes * tune->node_byte
                   : INFINITY;
    double node = bytes * 2 * tune->node_byte +
                  pieces * (2 + (double)r.cut.nshards) * tune->task;
    return 2 * tune->node_latency + pipeline(&r, node, tune->net_byte);
}

static double cost_reduce(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct rooted r = prepare(plan);
    double bytes = (double)plan->shape->count * (double)r.cut.elem;
    double pieces = (double)dt_at_least(r.cut.n, 1);
    double shards = (double)r.cut.nshards;
    double ranks = (double)plan->layout->size / (double)plan->layout->nnodes;
    double node =
        bytes * (2 * tune->node_byte + ranks / shards * tune->fold_byte) +
        pieces * (2 + shards) * tune->task + 2 * tune->node_latency;
    if (plan->layout->nnodes == 1)
        return plan->algorithm->variant == DT_TREE_BINOMIAL ? node : INFINITY;
    return pipeline(&r, node, tune->net_byte + tune->fold_byte);
}

const struct dt_algorithm dt_bcast_table[] = {
    {"binomial", cost_bcast, build_bcast, DT_TREE_BINOMIAL},
    {"chain", cost_bcast, build_bcast, DT_TREE_CHAIN},
    {"trees", cost_bcast, build_bcast, DT_TREE_FIRST},
    {NULL, NULL, NULL, 0},
};

const struct dt_algorithm dt_reduce_table[] = {
    {"binomial", cost_reduce, build_reduce, DT_TREE_BINOMIAL},
    {"chain", cost_reduce, build_reduce, DT_TREE_CHAIN},
    {"trees", cost_reduce, build_reduce, DT_TREE_FIRST},
    {NULL, NULL, NULL, 0},
};
