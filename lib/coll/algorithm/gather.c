/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gather.c - two algorithms that give the blocks of all ranks to the root, and
 * the same two backwards, by which it gives each rank a block (scatter). The
 * ranks of its own node post their blocks, and the root fetches them; in a
 * scatter they fetch from what the root posts.
 *
 * tree: each leader fetches the blocks of its node and passes them, with those
 * of the nodes below, up a binomial tree, at whose top the root puts them where
 * they belong. In a scatter the root packs them, and each leader passes on what
 * is for the nodes below, and posts the rest.
 *
 * direct: every rank of other nodes sends to the root, or receives from it; the
 * root has a bounded number of messages at once.
 *
 * The leader is the root on its own node, the lowest rank on the others. Nodes
 * are numbered by places in the tree, from 0 for the root's. Blocks are packed
 * in the order of places. */
#include "coll/algorithm/cut.h"
#include "coll/algorithm/rail.h"
#include "coll/algorithm/tree.h"

#define WINDOW 16 /* messages of the root at once */

struct gather {
    const struct dt_plan *plan;
    const struct dt_layout *layout;
    const struct dt_group *node;
    bool backwards; /* a scatter */
    bool at_root;   /* this rank is the root */
    bool leader;    /* of this node */
    size_t root, n, root_node;
    size_t place;  /* of this rank's node */
    size_t first;  /* local rank of this node's leader */
    size_t block;  /* bytes */
    size_t stride; /* of the root's blocks, in bytes */
};

static struct gather prepare(const struct dt_plan *plan)
{
    const struct dt_layout *layout = plan->layout;
    const struct dt_shape *shape = plan->shape;
    size_t elem = dt_dtype_size(shape->dtype), root = shape->root;
    struct gather g = {.plan = plan,
                       .layout = layout,
                       .node = dt_layout_node(layout),
                       .backwards = shape->coll == DT_COLL_SCATTER,
                       .at_root = layout->rank == root,
                       .root = root,
                       .n = layout->nnodes,
                       .root_node = layout->node_of[root],
                       .block = shape->count * elem,
                       .stride = shape->count * elem};
    const size_t *displs = g.backwards ? shape->senddispls : shape->recvdispls;
    if (displs && layout->size > 1)
        g.stride = displs[1] * elem;
    g.place = (layout->node + g.n - g.root_node) % g.n;
    g.first = g.place ? 0 : layout->local_of[root];
    g.leader = g.node->index == g.first;
    return g;
}

static const struct dt_group *group_at(const struct gather *g, size_t place)
{
    return &g->layout->nodes[(place + g->root_node) % g->n];
}

static size_t leader_at(const struct gather *g, size_t place)
{
    return place ? group_at(g, place)->ranks[0] : g->root;
}

/* Bytes of the places from first on, before end. */
static size_t bytes_of(const struct gather *g, size_t first, size_t end)
{
    size_t ranks = 0;
    for (size_t place = first; place < end; place++)
        ranks += group_at(g, place)->size;
    return ranks * g->block;
}

/* The subtree of a place in the binomial tree ends before this place. */
static size_t end_of(const struct gather *g, size_t place)
{
    size_t end = place ? place + (place & -place) : g->n;
    return end < g->n ? end : g->n;
}

/* The block of a rank at the root. */
static struct dt_ref block_of(const struct gather *g, size_t rank)
{
    return dt_ref(g->backwards ? DT_SPACE_SEND : DT_SPACE_RECV,
                  rank * g->stride);
}

/* The root's own. */
static void keep_own(const struct gather *g)
{
    const struct dt_ref at = block_of(g, g->root);
    if (!g->at_root || g->plan->shape->in_place)
        return;
    if (g->backwards)
        dt_sched_copy(g->plan->sched, dt_ref(DT_SPACE_RECV, 0), at, g->block);
    else
        dt_sched_copy(g->plan->sched, at, dt_ref(DT_SPACE_SEND, 0), g->block);
}

/* ---- in a node ---- */

/* Every rank of the node posts its block, the leader fetches them to where the
 * root has them, or to scratch space; its own one is not among them. */
static void collect(const struct gather *g)
{
    struct dt_sched *sched = g->plan->sched;
    size_t most = dt_cut_most(g->plan);
    for (size_t at = 0; g->node->size > 1 && at < g->block; at += most) {
        size_t len = g->block - at < most ? g->block - at : most;
        uint32_t round = dt_sched_round(sched);
        if (!g->leader) {
            dt_sched_post(sched, round, dt_ref(DT_SPACE_SEND, at), len, 0, 0);
            continue;
        }
        for (size_t i = 0; i < g->node->size; i++) {
            struct dt_ref dst = g->place
                                    ? dt_ref(DT_SPACE_SCRATCH, i * g->block)
                                    : block_of(g, g->node->ranks[i]);
            dst.offset += at;
            if (i != g->node->index)
                dt_sched_fetch(sched, round, i, dst, 0, len);
        }
    }
}

/* The leader posts what is at from, the blocks of n local ranks from i on;
 * those fetch their own. */
static void hand_out(const struct gather *g, struct dt_ref from, size_t i,
                     size_t n, size_t ready)
{
    struct dt_sched *sched = g->plan->sched;
    size_t most = dt_cut_most(g->plan), all = n * g->block, me = g->node->index;
    size_t begin = me >= i && me < i + n ? (me - i) * g->block : all;
    for (size_t at = 0, len; at < all; at += len) {
        uint32_t round = dt_sched_round(sched);
        len = all - at < most ? all - at : most;
        if (g->leader) {
            size_t post = dt_sched_post(
                sched, round, dt_ref(from.space, from.offset + at), len, 0, 0);
            dt_sched_after(sched, post, ready);
            continue;
        }
        size_t first = dt_at_least(at, begin), end = begin + g->block;
        if (end > at + len)
            end = at + len;
        if (first < end)
            dt_sched_fetch(sched, round, g->first,
                           dt_ref(DT_SPACE_RECV, first - begin), first - at,
                           end - first);
    }
}

/* On the root's node: runs of ranks that follow each other. */
static void hand_out_root(const struct gather *g)
{
    const size_t *ranks = g->node->ranks;
    keep_own(g);
    for (size_t i = 0, end; g->node->size > 1 && i < g->node->size; i = end) {
        for (end = i + 1; g->stride == g->block && end < g->node->size &&
                          ranks[end] == ranks[end - 1] + 1;)
            end++;
        hand_out(g, block_of(g, ranks[i]), i, end - i, DT_OPERATION_NONE);
    }
}

/* ---- tree ---- */

/* The root moves the blocks of the places from first on, which are packed at
 * offset, to where they belong, or from there. */
static void sort(const struct gather *g, size_t first, size_t end,
                 size_t offset, size_t got)
{
    struct dt_sched *sched = g->plan->sched;
    for (size_t place = first; place < end; place++) {
        const struct dt_group *node = group_at(g, place);
        for (size_t i = 0; i < node->size; i++, offset += g->block) {
            struct dt_ref at = block_of(g, node->ranks[i]);
            struct dt_ref packed = dt_ref(DT_SPACE_SCRATCH, offset);
            size_t copy = g->backwards
                              ? dt_sched_copy(sched, packed, at, g->block)
                              : dt_sched_copy(sched, at, packed, g->block);
            dt_sched_after(sched, copy, got);
        }
    }
}

/* Between a leader and its children, whose blocks are in scratch space when
 * ready is done. */
static void exchange_children(const struct gather *g,
                              const struct dt_tree *tree, size_t ready)
{
    struct dt_sched *sched = g->plan->sched;
    for (size_t i = 0; i < tree->nchildren; i++) {
        size_t child = tree->children[i], last = end_of(g, child);
        size_t offset = bytes_of(g, g->place, child);
        size_t peer = leader_at(g, child), len = bytes_of(g, child, last);
        struct dt_ref packed = dt_ref(DT_SPACE_SCRATCH, offset);
        size_t first = sched->noperations;
        if (!g->backwards)
            ready = dt_sched_recv(sched, peer, packed, len);
        if (!g->place)
            sort(g, child, last, offset, ready);
        if (!g->backwards)
            continue;
        if (!g->place)
            ready = dt_sched_join(sched, first);
        dt_sched_after(sched, dt_sched_send(sched, peer, packed, len), ready);
    }
}

static void gather_tree(const struct gather *g, const struct dt_tree *tree)
{
    struct dt_sched *sched = g->plan->sched;
    size_t first = sched->noperations;
    const struct dt_ref packed = dt_ref(DT_SPACE_SCRATCH, 0);
    if (!g->place)
        keep_own(g);
    else if (g->leader)
        dt_sched_copy(sched, packed, dt_ref(DT_SPACE_SEND, 0), g->block);
    collect(g);
    if (!g->leader)
        return;
    exchange_children(g, tree, DT_OPERATION_NONE);
    if (g->place) {
        size_t ready = dt_sched_join(sched, first);
        dt_sched_after(sched,
                       dt_sched_send(sched, leader_at(g, tree->parent), packed,
                                     sched->scratch),
                       ready);
    }
}

static void scatter_tree(const struct gather *g, const struct dt_tree *tree)
{
    struct dt_sched *sched = g->plan->sched;
    size_t got = DT_OPERATION_NONE;
    const struct dt_ref packed = dt_ref(DT_SPACE_SCRATCH, 0);
    if (g->leader && g->place)
        got = dt_sched_recv(sched, leader_at(g, tree->parent), packed,
                            sched->scratch);
    if (g->leader)
        exchange_children(g, tree, got);
    if (!g->place) {
        hand_out_root(g);
        return;
    }
    if (g->leader)
        dt_sched_after(
            sched,
            dt_sched_copy(sched, dt_ref(DT_SPACE_RECV, 0), packed, g->block),
            got);
    if (g->node->size > 1)
        hand_out(g, packed, 0, g->node->size, got);
}

static void build_tree(const struct dt_plan *plan)
{
    const struct gather g = prepare(plan);
    const struct dt_tree tree = dt_tree(DT_TREE_BINOMIAL, g.n, g.place);
    if (g.leader)
        plan->sched->scratch = bytes_of(&g, g.place, end_of(&g, g.place));
    if (g.backwards)
        scatter_tree(&g, &tree);
    else
        gather_tree(&g, &tree);
}

/* ---- direct ---- */

static void exchange_all(const struct gather *g)
{
    struct dt_sched *sched = g->plan->sched;
    size_t size = g->layout->size, n = 0, before[WINDOW];
    for (size_t i = 1; g->at_root && i < size; i++) {
        size_t rank = (g->root + i) % size;
        if (g->layout->node_of[rank] == g->root_node)
            continue;
        struct dt_ref at = block_of(g, rank);
        size_t operation = g->backwards
                               ? dt_sched_send(sched, rank, at, g->block)
                               : dt_sched_recv(sched, rank, at, g->block);
        if (n >= WINDOW)
            dt_sched_after(sched, operation, before[n % WINDOW]);
        before[n++ % WINDOW] = operation;
    }
}

static void build_direct(const struct dt_plan *plan)
{
    const struct gather g = prepare(plan);
    if (g.place && g.backwards) {
        dt_sched_recv(plan->sched, g.root, dt_ref(DT_SPACE_RECV, 0), g.block);
    } else if (g.place) {
        dt_sched_send(plan->sched, g.root, dt_ref(DT_SPACE_SEND, 0), g.block);
    } else if (g.backwards) {
        exchange_all(&g);
        hand_out_root(&g);
    } else {
        keep_own(&g);
        collect(&g);
        exchange_all(&g);
    }
}

/* ---- costs ---- */

/* Of moving the blocks of all ranks up or down the tree. */
static double cost_tree(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct gather g = prepare(plan);
    double bytes = (double)plan->layout->size * (double)g.block;
    double steps = (double)dt_log_two(2 * g.n - 1);
    return tune->node_latency + steps * (tune->net_latency + 3 * tune->task) +
           bytes * (2 * tune->net_byte + 2 * tune->node_byte) +
           (double)plan->layout->size * tune->task;
}

/* The same with one message for each rank of other nodes; the root handles them
 * one by one. */
static double cost_direct(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct gather g = prepare(plan);
    double ranks = (double)plan->layout->size;
    double far = ranks - ranks / (double)g.n;
    return tune->node_latency + (g.n > 1 ? tune->net_latency : 0) +
           far * (tune->net_latency / 4 + 2 * tune->task) +
           ranks * (double)g.block * tune->net_byte;
}

/* The same for both. */
const struct dt_algorithm dt_gather_table[] = {
    {"tree", cost_tree, build_tree, 0},
    {"direct", cost_direct, build_direct, 0},
    {NULL, NULL, NULL, 0},
};
