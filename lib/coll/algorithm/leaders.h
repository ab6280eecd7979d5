/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* leaders.h - the node leaders of a gather or scatter: the root on its own
 * node, the lowest rank on the others. Nodes are numbered by places in the
 * tree, from 0 for the root's. Blocks are packed in the order of places. */
#ifndef DT_COLL_ALGORITHM_LEADERS_H
#define DT_COLL_ALGORITHM_LEADERS_H

#include "coll/algorithm/algorithm.h"
#include "coll/algorithm/rail.h"

struct dt_leaders {
    const struct dt_layout *layout;
    size_t n, root_node; /* nodes; the node of the root */
    size_t place;        /* of this rank's node */
    size_t leader;       /* local rank of this node's leader */
    size_t block;        /* bytes */
    size_t stride;       /* of the root's blocks, in bytes */
};

static inline struct dt_leaders dt_leaders(const struct dt_plan *plan)
{
    const struct dt_layout *layout = plan->layout;
    size_t n = layout->nnodes, root = plan->shape->root;
    size_t root_node = layout->node_of[root];
    size_t place = (layout->node + n - root_node) % n;
    size_t elem = dt_dtype_size(plan->shape->dtype);
    size_t block = plan->shape->count * elem, stride = block;
    const size_t *displs = plan->shape->senddispls ? plan->shape->senddispls
                                                   : plan->shape->recvdispls;
    if (displs && layout->size > 1)
        stride = displs[1] * elem;
    return (struct dt_leaders){
        layout, n,     root_node, place, place ? 0 : layout->local_of[root],
        block,  stride};
}

static inline const struct dt_group *
dt_leaders_group(const struct dt_leaders *leaders, size_t place)
{
    return &leaders->layout->nodes[(place + leaders->root_node) % leaders->n];
}

/* The leader at a place other than 0. */
static inline size_t dt_leaders_rank(const struct dt_leaders *leaders,
                                     size_t place)
{
    return dt_leaders_group(leaders, place)->ranks[0];
}

/* Bytes of the places from first on, before end. */
static inline size_t dt_leaders_bytes(const struct dt_leaders *leaders,
                                      size_t first, size_t end)
{
    size_t ranks = 0;
    for (size_t place = first; place < end; place++)
        ranks += dt_leaders_group(leaders, place)->size;
    return ranks * leaders->block;
}

/* The subtree of a place in the binomial tree ends before this place. */
static inline size_t dt_leaders_end(const struct dt_leaders *leaders,
                                    size_t place)
{
    size_t end = place ? place + (place & -place) : leaders->n;
    return end < leaders->n ? end : leaders->n;
}

/* The cost of moving the blocks of all ranks up or down that tree. */
static inline double dt_leaders_cost(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct dt_leaders leaders = dt_leaders(plan);
    double bytes = (double)plan->layout->size * (double)leaders.block;
    double steps = (double)dt_log_two(2 * leaders.n - 1);
    return tune->node_latency + steps * (tune->net_latency + 3 * tune->task) +
           bytes * (2 * tune->net_byte + 2 * tune->node_byte) +
           (double)plan->layout->size * tune->task;
}

/* The same with one message for each rank of other nodes; the root handles them
 * one by one. */
static inline double dt_leaders_cost_direct(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct dt_leaders leaders = dt_leaders(plan);
    double ranks = (double)plan->layout->size;
    double far = ranks - ranks / (double)leaders.n;
    return tune->node_latency + (leaders.n > 1 ? tune->net_latency : 0) +
           far * (tune->net_latency / 4 + 2 * tune->task) +
           ranks * (double)leaders.block * tune->net_byte;
}

#endif
