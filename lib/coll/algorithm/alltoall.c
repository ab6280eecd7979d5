/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* alltoall.c - two algorithms by which each rank gets its own block of every
 * rank.
 *
 * pairwise: in step d each rank sends to the one d further and receives from
 * the one d before, a bounded number of steps at once. With counts that only
 * the two know, this is the only way; with equal ones the ranks of a node take
 * their blocks from each other in rounds.
 *
 * nodes: when blocks are short and all nodes have as many ranks. Every rank
 * posts all it has; local rank j fetches what goes to the local ranks j of all
 * nodes, and sends to each of them the blocks of this node in one message. */
#include <math.h>

#include "coll/algorithm/cut.h"

#define WINDOW 16 /* steps at once */

struct alltoall {
    const struct dt_plan *plan;
    const struct dt_layout *layout;
    const struct dt_group *node;
    size_t elem, block; /* bytes */
};

static struct alltoall prepare(const struct dt_plan *plan)
{
    size_t elem = dt_dtype_size(plan->shape->dtype);
    return (struct alltoall){.plan = plan,
                             .layout = plan->layout,
                             .node = dt_layout_node(plan->layout),
                             .elem = elem,
                             .block = plan->shape->count * elem};
}

/* What goes to a rank, and what comes from it. */
static struct dt_ref out(const struct alltoall *a, size_t rank, size_t *len)
{
    const struct dt_shape *shape = a->plan->shape;
    *len = a->block;
    if (shape->sendcounts)
        *len = shape->sendcounts[rank] * a->elem;
    return dt_ref(DT_SPACE_SEND, shape->senddispls
                                     ? shape->senddispls[rank] * a->elem
                                     : rank * a->block);
}

static struct dt_ref in(const struct alltoall *a, size_t rank, size_t *len)
{
    const struct dt_shape *shape = a->plan->shape;
    *len = a->block;
    if (shape->recvcounts)
        *len = shape->recvcounts[rank] * a->elem;
    return dt_ref(DT_SPACE_RECV, shape->recvdispls
                                     ? shape->recvdispls[rank] * a->elem
                                     : rank * a->block);
}

static void keep_own(const struct alltoall *a)
{
    size_t len;
    struct dt_ref from = out(a, a->layout->rank, &len);
    struct dt_ref to = in(a, a->layout->rank, &len);
    dt_sched_copy(a->plan->sched, to, from, len);
}

/* ---- pairwise ---- */

/* In the node: in round d a rank shows a piece of what is for the one d
 * further. */
static void exchange_local(const struct alltoall *a)
{
    struct dt_sched *sched = a->plan->sched;
    size_t n = a->node->size, me = a->node->index;
    size_t most = dt_cut_most(a->plan);
    for (size_t d = 1; d < n; d++)
        for (size_t at = 0; at < a->block; at += most) {
            size_t len = a->block - at < most ? a->block - at : most, all;
            size_t from = (me + n - d) % n;
            struct dt_ref src = out(a, a->node->ranks[(me + d) % n], &all);
            struct dt_ref dst = in(a, a->node->ranks[from], &all);
            uint32_t round = dt_sched_round(sched);
            src.offset += at;
            dst.offset += at;
            dt_sched_post(sched, round, src, len, 0, 0);
            dt_sched_fetch(sched, round, from, dst, 0, len);
        }
}

/* A step begins when the one WINDOW before is over, even if it is empty, so
 * it needs only earlier steps of others. */
static void exchange_far(const struct alltoall *a, bool all)
{
    struct dt_sched *sched = a->plan->sched;
    size_t size = a->layout->size, me = a->layout->rank, len;
    size_t ends[WINDOW];
    for (size_t d = 1; d < size; d++) {
        size_t to = (me + d) % size, from = (me + size - d) % size;
        sched->gate = d <= WINDOW ? DT_OPERATION_NONE : ends[d % WINDOW];
        size_t first = sched->noperations;
        struct dt_ref ref = in(a, from, &len);
        if (all || a->layout->node_of[from] != a->layout->node)
            dt_sched_recv(sched, from, ref, len);
        ref = out(a, to, &len);
        if (all || a->layout->node_of[to] != a->layout->node)
            dt_sched_send(sched, to, ref, len);
        ends[d % WINDOW] = dt_sched_join(sched, first);
    }
    sched->gate = DT_OPERATION_NONE;
}

static void build_pairwise(const struct dt_plan *plan)
{
    const struct alltoall a = prepare(plan);
    bool uneven = plan->shape->sendcounts;
    keep_own(&a);
    if (!uneven)
        exchange_local(&a);
    exchange_far(&a, uneven);
}

/* ---- nodes ---- */

/* Blocks in scratch space: to, or from, each node those of its local ranks. */
static struct dt_ref packed(const struct alltoall *a, size_t node, bool came,
                            size_t local)
{
    size_t place = ((came ? a->layout->nnodes : 0) + node) * a->node->size;
    return dt_ref(DT_SPACE_SCRATCH, (place + local) * a->block);
}

/* What is for my local rank on a node: from my own node to its place, else
 * packed for the message to there. */
static void pack(const struct alltoall *a, size_t node, uint32_t round)
{
    struct dt_sched *sched = a->plan->sched;
    size_t me = a->node->index, n = a->node->size, len;
    size_t rank = a->layout->nodes[node].ranks[me];
    bool home = node == a->layout->node;
    for (size_t k = 0; k < n; k++) {
        size_t local = (me + k) % n;
        struct dt_ref dst = packed(a, node, false, local);
        if (home)
            dst = in(a, a->node->ranks[local], &len);
        if (local != me)
            dt_sched_fetch(sched, round, local, dst, rank * a->block, a->block);
        else if (!home)
            dt_sched_copy(sched, dst, out(a, rank, &len), a->block);
    }
}

static void unpack(const struct alltoall *a, size_t node, size_t got)
{
    struct dt_sched *sched = a->plan->sched;
    size_t len;
    for (size_t i = 0; i < a->node->size; i++)
        dt_sched_after(
            sched,
            dt_sched_copy(sched, in(a, a->layout->nodes[node].ranks[i], &len),
                          packed(a, node, true, i), a->block),
            got);
}

static void build_nodes(const struct dt_plan *plan)
{
    const struct alltoall a = prepare(plan);
    struct dt_sched *sched = plan->sched;
    size_t n = a.layout->nnodes, home = a.layout->node, me = a.node->index;
    uint32_t round = 0;
    sched->scratch = 2 * a.layout->size * a.block;
    keep_own(&a);
    if (a.node->size > 1) {
        round = dt_sched_round(sched);
        dt_sched_post(sched, round, dt_ref(DT_SPACE_SEND, 0),
                      a.layout->size * a.block, 0, 0);
        pack(&a, home, round);
    }
    for (size_t d = 1; d < n; d++) {
        size_t to = (home + d) % n, from = (home + n - d) % n;
        size_t first = sched->noperations;
        pack(&a, to, round);
        size_t packed_all = dt_sched_join(sched, first);
        dt_sched_after(sched,
                       dt_sched_send(sched, a.layout->nodes[to].ranks[me],
                                     packed(&a, to, false, 0),
                                     a.node->size * a.block),
                       packed_all);
        unpack(&a, from,
               dt_sched_recv(sched, a.layout->nodes[from].ranks[me],
                             packed(&a, from, true, 0),
                             a.node->size * a.block));
    }
}

/* ---- costs ---- */

static double cost_pairwise(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct dt_layout *layout = plan->layout;
    double block =
        (double)plan->shape->count * (double)dt_dtype_size(plan->shape->dtype);
    double ranks = (double)layout->size;
    double far = ranks - ranks / (double)layout->nnodes;
    /* what a message costs both ends grows with the ranks that share a link */
    return far * (tune->net_latency / 4 + 4 * tune->task +
                  block * tune->net_byte) +
           ranks * block * 2 * tune->node_byte;
}

static double cost_nodes(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct dt_layout *layout = plan->layout;
    double block =
        (double)plan->shape->count * (double)dt_dtype_size(plan->shape->dtype);
    double ranks = (double)layout->size, nodes = (double)layout->nnodes;
    bool even = layout->nrails * layout->nnodes == layout->size;
    if (plan->shape->senddispls || !even ||
        ranks * block > (double)dt_cut_most(plan))
        return INFINITY;
    return 2 * tune->node_latency + tune->net_latency +
           (nodes - 1) * (tune->net_latency / 4 + 4 * tune->task) +
           ranks * (2 * tune->task +
                    block * (tune->net_byte + 4 * tune->node_byte));
}

const struct dt_algorithm dt_alltoall_table[] = {
    {"pairwise", cost_pairwise, build_pairwise, 0},
    {"nodes", cost_nodes, build_nodes, 0},
    {NULL, NULL, NULL, 0},
};
