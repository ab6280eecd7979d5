/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* scatter.c - two algorithms by which the root gives each rank a block. The
 * ranks of its own node fetch theirs from what the root posts.
 *
 * tree: the root packs the blocks in the order of the nodes; each leader gets
 * those of its node and of the nodes below it in a binomial tree, passes the
 * latter on and posts the former.
 *
 * direct: the root sends to every rank of other nodes, a bounded number at
 * once. */
#include <math.h>

#include "coll/algorithm/cut.h"
#include "coll/algorithm/leaders.h"
#include "coll/algorithm/tree.h"

#define WINDOW 16 /* sends of the root at once */

/* The leader posts len bytes at offset of its memory, which hold the blocks of
 * n local ranks from i on; those fetch their own. */
static void hand_out(const struct dt_plan *plan,
                     const struct dt_leaders *leaders, struct dt_ref from,
                     size_t i, size_t n, size_t ready)
{
    struct dt_sched *sched = plan->sched;
    const struct dt_group *node = dt_layout_node(plan->layout);
    size_t most = dt_cut_most(plan), all = n * leaders->block, me = node->index;
    size_t begin = me >= i && me < i + n ? (me - i) * leaders->block : all;
    for (size_t at = 0, len; at < all; at += len) {
        uint32_t round = dt_sched_round(sched);
        len = all - at < most ? all - at : most;
        if (me == leaders->leader) {
            size_t post = dt_sched_post(
                sched, round, dt_ref(from.space, from.offset + at), len, 0, 0);
            dt_sched_after(sched, post, ready);
            continue;
        }
        size_t first = dt_at_least(at, begin), end = begin + leaders->block;
        if (end > at + len)
            end = at + len;
        if (first < end)
            dt_sched_fetch(sched, round, leaders->leader,
                           dt_ref(DT_SPACE_RECV, first - begin), first - at,
                           end - first);
    }
}

/* The root's own, and those of its node: runs of ranks that follow each
 * other. */
static void hand_out_root(const struct dt_plan *plan,
                          const struct dt_leaders *leaders)
{
    const struct dt_group *node = dt_layout_node(plan->layout);
    size_t root = plan->shape->root;
    if (plan->layout->rank == root && !plan->shape->in_place)
        dt_sched_copy(plan->sched, dt_ref(DT_SPACE_RECV, 0),
                      dt_ref(DT_SPACE_SEND, root * leaders->stride),
                      leaders->block);
    for (size_t i = 0, end; node->size > 1 && i < node->size; i = end) {
        for (end = i + 1; leaders->stride == leaders->block &&
                          end < node->size &&
                          node->ranks[end] == node->ranks[end - 1] + 1;)
            end++;
        hand_out(plan, leaders,
                 dt_ref(DT_SPACE_SEND, node->ranks[i] * leaders->stride), i,
                 end - i, DT_OPERATION_NONE);
    }
}

/* ---- tree ---- */

/* At the root, the blocks of the places from first on; returns the operation
 * that ends it. */
static size_t pack(const struct dt_plan *plan, const struct dt_leaders *leaders,
                   size_t first, size_t end, size_t offset)
{
    size_t begin = plan->sched->noperations;
    for (size_t place = first; place < end; place++) {
        const struct dt_group *node = dt_leaders_group(leaders, place);
        for (size_t i = 0; i < node->size; i++, offset += leaders->block)
            dt_sched_copy(
                plan->sched, dt_ref(DT_SPACE_SCRATCH, offset),
                dt_ref(DT_SPACE_SEND, node->ranks[i] * leaders->stride),
                leaders->block);
    }
    return dt_sched_join(plan->sched, begin);
}

/* To the children of a place, whose blocks are in scratch space when ready is
 * done, or which the root packs. */
static void pass_on(const struct dt_plan *plan,
                    const struct dt_leaders *leaders, size_t ready)
{
    const struct dt_tree tree =
        dt_tree(DT_TREE_BINOMIAL, leaders->n, leaders->place);
    for (size_t i = 0; i < tree.nchildren; i++) {
        size_t child = tree.children[i], last = dt_leaders_end(leaders, child);
        size_t offset = dt_leaders_bytes(leaders, leaders->place, child);
        if (!leaders->place)
            ready = pack(plan, leaders, child, last, offset);
        dt_sched_after(plan->sched,
                       dt_sched_send(plan->sched,
                                     dt_leaders_rank(leaders, child),
                                     dt_ref(DT_SPACE_SCRATCH, offset),
                                     dt_leaders_bytes(leaders, child, last)),
                       ready);
    }
}

static void build_tree(const struct dt_plan *plan)
{
    const struct dt_leaders leaders = dt_leaders(plan);
    struct dt_sched *sched = plan->sched;
    const struct dt_group *node = dt_layout_node(plan->layout);
    const struct dt_tree tree =
        dt_tree(DT_TREE_BINOMIAL, leaders.n, leaders.place);
    size_t got = DT_OPERATION_NONE;
    bool leader = node->index == leaders.leader;
    if (leader)
        sched->scratch = dt_leaders_bytes(
            &leaders, leaders.place, dt_leaders_end(&leaders, leaders.place));
    if (leader && leaders.place)
        got = dt_sched_recv(sched,
                            tree.parent ? dt_leaders_rank(&leaders, tree.parent)
                                        : plan->shape->root,
                            dt_ref(DT_SPACE_SCRATCH, 0), sched->scratch);
    if (leader)
        pass_on(plan, &leaders, got);
    if (!leaders.place) {
        hand_out_root(plan, &leaders);
        return;
    }
    if (leader)
        dt_sched_after(sched,
                       dt_sched_copy(sched, dt_ref(DT_SPACE_RECV, 0),
                                     dt_ref(DT_SPACE_SCRATCH, 0),
                                     leaders.block),
                       got);
    if (node->size > 1)
        hand_out(plan, &leaders, dt_ref(DT_SPACE_SCRATCH, 0), 0, node->size,
                 got);
}

/* ---- direct ---- */

static void build_direct(const struct dt_plan *plan)
{
    const struct dt_leaders leaders = dt_leaders(plan);
    struct dt_sched *sched = plan->sched;
    size_t size = plan->layout->size, root = plan->shape->root, n = 0;
    size_t sent[WINDOW];
    if (leaders.place) {
        dt_sched_recv(sched, root, dt_ref(DT_SPACE_RECV, 0), leaders.block);
        return;
    }
    for (size_t i = 1; plan->layout->rank == root && i < size; i++) {
        size_t rank = (root + i) % size;
        if (plan->layout->node_of[rank] == leaders.root_node)
            continue;
        size_t operation = dt_sched_send(
            sched, rank, dt_ref(DT_SPACE_SEND, rank * leaders.stride),
            leaders.block);
        if (n >= WINDOW)
            dt_sched_after(sched, operation, sent[n % WINDOW]);
        sent[n++ % WINDOW] = operation;
    }
    hand_out_root(plan, &leaders);
}

const struct dt_algorithm dt_scatter_table[] = {
    {"tree", dt_leaders_cost, build_tree, 0},
    {"direct", dt_leaders_cost_direct, build_direct, 0},
    {NULL, NULL, NULL, 0},
};
