/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* heads.h - one rank of each node, for trees with a root: the root itself, and
 * the leaders of the other nodes. Nodes have places, the root's is 0, and the
 * blocks of the ranks of all places follow each other. */
#ifndef DT_COLL_ALGORITHM_HEADS_H
#define DT_COLL_ALGORITHM_HEADS_H

#include "coll/algorithm/algorithm.h"
#include "coll/algorithm/rail.h"

struct dt_heads {
    const struct dt_layout *layout;
    size_t n, root_node, place; /* mine */
    size_t head;                /* local rank of my node's */
    size_t block;               /* bytes */
    size_t stride;              /* of the root's blocks, in bytes */
};

static inline struct dt_heads dt_heads(const struct dt_plan *plan)
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
    return (struct dt_heads){
        layout, n,     root_node, place, place ? 0 : layout->local_of[root],
        block,  stride};
}

static inline const struct dt_group *dt_heads_node(const struct dt_heads *heads,
                                                   size_t place)
{
    return &heads->layout->nodes[(place + heads->root_node) % heads->n];
}

/* The rank that is the head at a place other than 0. */
static inline size_t dt_heads_rank(const struct dt_heads *heads, size_t place)
{
    return dt_heads_node(heads, place)->ranks[0];
}

/* Bytes of the places from first on, before end. */
static inline size_t dt_heads_bytes(const struct dt_heads *heads, size_t first,
                                    size_t end)
{
    size_t ranks = 0;
    for (size_t place = first; place < end; place++)
        ranks += dt_heads_node(heads, place)->size;
    return ranks * heads->block;
}

/* The place behind the last one below a place in the binomial tree. */
static inline size_t dt_heads_end(const struct dt_heads *heads, size_t place)
{
    size_t end = place ? place + (place & -place) : heads->n;
    return end < heads->n ? end : heads->n;
}

/* Of all ranks' blocks to or from the root, up or down that tree. */
static inline double dt_heads_cost(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct dt_heads heads = dt_heads(plan);
    double bytes = (double)plan->layout->size * (double)heads.block;
    double steps = (double)dt_log_two(2 * heads.n - 1);
    return tune->node_latency + steps * (tune->net_latency + 3 * tune->task) +
           bytes * (2 * tune->net_byte + 2 * tune->node_byte) +
           (double)plan->layout->size * tune->task;
}

/* The same by a message for each rank; messages of many come one by one. */
static inline double dt_heads_cost_direct(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    const struct dt_heads heads = dt_heads(plan);
    double ranks = (double)plan->layout->size;
    double far = ranks - ranks / (double)heads.n;
    return tune->node_latency + (heads.n > 1 ? tune->net_latency : 0) +
           far * (tune->net_latency / 4 + 2 * tune->task) +
           ranks * (double)heads.block * tune->net_byte;
}

#endif
