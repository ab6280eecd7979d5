/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gather.c - two algorithms that give the blocks of all ranks to the root. The
 * ranks of its own node post their blocks, and the root fetches them.
 *
 * tree: each leader fetches the blocks of its node and passes them, with those
 * of the nodes below, up a binomial tree.
 *
 * direct: every rank of other nodes sends to the root, which receives a
 * bounded number at once. */
#include <math.h>

#include "coll/algorithm/cut.h"
#include "coll/algorithm/leaders.h"
#include "coll/algorithm/tree.h"

#define WINDOW 16 /* receives of the root at once */

/* Every rank of the node posts its block, the leader fetches them to dst, at
 * offsets of ranks or of local ranks; its own one is not among them. */
static void collect(const struct dt_plan *plan,
                    const struct dt_leaders *leaders, enum dt_space dst,
                    bool by_rank)
{
    struct dt_sched *sched = plan->sched;
    const struct dt_group *node = dt_layout_node(plan->layout);
    size_t most = dt_cut_most(plan);
    for (size_t at = 0; node->size > 1 && at < leaders->block; at += most) {
        size_t len = leaders->block - at < most ? leaders->block - at : most;
        uint32_t round = dt_sched_round(sched);
        if (node->index != leaders->leader) {
            dt_sched_post(sched, round, dt_ref(DT_SPACE_SEND, at), len, 0, 0);
            continue;
        }
        for (size_t i = 0; i < node->size; i++) {
            size_t place =
                by_rank ? node->ranks[i] * leaders->stride : i * leaders->block;
            if (i != node->index)
                dt_sched_fetch(sched, round, i, dt_ref(dst, place + at), 0,
                               len);
        }
    }
}

/* The root's own, and those of its node. */
static void collect_root(const struct dt_plan *plan,
                         const struct dt_leaders *leaders)
{
    size_t root = plan->shape->root;
    if (plan->layout->rank == root && !plan->shape->in_place)
        dt_sched_copy(plan->sched,
                      dt_ref(DT_SPACE_RECV, root * leaders->stride),
                      dt_ref(DT_SPACE_SEND, 0), leaders->block);
    collect(plan, leaders, DT_SPACE_RECV, true);
}

/* ---- tree ---- */

/* The root moves what came to where it belongs. */
static void unpack(const struct dt_plan *plan, const struct dt_leaders *leaders,
                   size_t first, size_t end, size_t offset, size_t got)
{
    for (size_t place = first; place < end; place++) {
        const struct dt_group *node = dt_leaders_group(leaders, place);
        for (size_t i = 0; i < node->size; i++, offset += leaders->block)
            dt_sched_after(
                plan->sched,
                dt_sched_copy(
                    plan->sched,
                    dt_ref(DT_SPACE_RECV, node->ranks[i] * leaders->stride),
                    dt_ref(DT_SPACE_SCRATCH, offset), leaders->block),
                got);
    }
}

static void build_tree(const struct dt_plan *plan)
{
    const struct dt_leaders leaders = dt_leaders(plan);
    struct dt_sched *sched = plan->sched;
    const struct dt_tree tree =
        dt_tree(DT_TREE_BINOMIAL, leaders.n, leaders.place);
    size_t first = sched->noperations,
           end = dt_leaders_end(&leaders, leaders.place);
    bool leader = dt_layout_node(plan->layout)->index == leaders.leader;
    if (leaders.place) {
        if (leader)
            dt_sched_copy(sched, dt_ref(DT_SPACE_SCRATCH, 0),
                          dt_ref(DT_SPACE_SEND, 0), leaders.block);
        collect(plan, &leaders, DT_SPACE_SCRATCH, false);
    } else {
        collect_root(plan, &leaders);
    }
    if (!leader)
        return;
    sched->scratch = dt_leaders_bytes(&leaders, leaders.place, end);
    for (size_t i = 0; i < tree.nchildren; i++) {
        size_t child = tree.children[i], last = dt_leaders_end(&leaders, child);
        size_t offset = dt_leaders_bytes(&leaders, leaders.place, child);
        size_t got = dt_sched_recv(sched, dt_leaders_rank(&leaders, child),
                                   dt_ref(DT_SPACE_SCRATCH, offset),
                                   dt_leaders_bytes(&leaders, child, last));
        if (!leaders.place)
            unpack(plan, &leaders, child, last, offset, got);
    }
    if (leaders.place) {
        size_t ready = dt_sched_join(sched, first);
        size_t up = tree.parent ? dt_leaders_rank(&leaders, tree.parent)
                                : plan->shape->root;
        dt_sched_after(sched,
                       dt_sched_send(sched, up, dt_ref(DT_SPACE_SCRATCH, 0),
                                     sched->scratch),
                       ready);
    }
}

/* ---- direct ---- */

static void build_direct(const struct dt_plan *plan)
{
    const struct dt_leaders leaders = dt_leaders(plan);
    struct dt_sched *sched = plan->sched;
    size_t size = plan->layout->size, root = plan->shape->root, n = 0;
    size_t got[WINDOW];
    if (leaders.place) {
        dt_sched_send(sched, root, dt_ref(DT_SPACE_SEND, 0), leaders.block);
        return;
    }
    collect_root(plan, &leaders);
    for (size_t i = 1; plan->layout->rank == root && i < size; i++) {
        size_t rank = (root + i) % size;
        if (plan->layout->node_of[rank] == leaders.root_node)
            continue;
        size_t operation = dt_sched_recv(
            sched, rank, dt_ref(DT_SPACE_RECV, rank * leaders.stride),
            leaders.block);
        if (n >= WINDOW)
            dt_sched_after(sched, operation, got[n % WINDOW]);
        got[n++ % WINDOW] = operation;
    }
}

const struct dt_algorithm dt_gather_table[] = {
    {"tree", dt_leaders_cost, build_tree, 0},
    {"direct", dt_leaders_cost_direct, build_direct, 0},
    {NULL, NULL, NULL, 0},
};
