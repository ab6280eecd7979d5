/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* layout.h - where the ranks of a communicator are, and the subgroups that
 * follow from it; the same on all of them. Ranks are those of the
 * communicator, nodes are numbered by their lowest rank. */
#ifndef DT_COLL_ALGORITHM_LAYOUT_H
#define DT_COLL_ALGORITHM_LAYOUT_H

#include "base/error.h"

/* A subgroup: ranks in rising order. index is this rank's place, or
 * DT_NOT_A_MEMBER. */
struct dt_group {
    size_t size, index;
    size_t *ranks;
};
#define DT_NOT_A_MEMBER SIZE_MAX

struct dt_layout {
    size_t rank, size;
    size_t nnodes, node;     /* how many, and which is mine */
    size_t *node_of;         /* per rank */
    size_t *local_of;        /* per rank: its index in its node */
    struct dt_group *nodes;  /* NODE: the ranks of each */
    struct dt_group leaders; /* NODE_LEADERS: the first rank of each */
    size_t nrails;           /* RAIL: the ranks of one local rank, on every
                              * node; so many, the smallest local size */
    size_t piece_max;        /* of a round's piece; 0: no rounds, as every
                              * node has one rank */
};

/* From the node of each rank (any numbers, equal ones are the same node); they
 * are copied. piece_max is left at 0. Error NO_MEMORY. */
dt_result_t dt_layout_init(struct dt_layout *layout, size_t rank, size_t size,
                           const size_t *node_of, struct dt_error *err);
void dt_layout_fini(struct dt_layout *layout);

/* The ranks of this rank's node. */
static inline const struct dt_group *
dt_layout_node(const struct dt_layout *layout)
{
    return &layout->nodes[layout->node];
}

#endif
