/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rail.h - allreduce of one vector between the nodes: the ranks of equal
 * local rank, one per node, each with its own part of the whole.
 *
 * The vector lies in pieces in the receive buffer. What other ranks send is
 * received into scratch space and added; a sum that two ranks compute both
 * take in the order of the nodes. Each function returns an operation after
 * which the vector is complete and its memory is not written any more; its
 * operations all follow those of ready, and are added behind noperations. */
#ifndef DT_COLL_ALGORITHM_RAIL_H
#define DT_COLL_ALGORITHM_RAIL_H

#include "coll/algorithm/algorithm.h"
#include "coll/algorithm/part.h"

/* One piece: count elements of the vector, first the number of the first. */
struct dt_extent {
    size_t first, count;
    size_t offset; /* bytes, in the receive buffer */
    size_t ready;  /* operation after which it holds this node's share */
};

struct dt_rail {
    const struct dt_plan *plan;
    size_t n, me;  /* nodes, and which is mine */
    size_t local;  /* of all ranks of the rail */
    size_t elem;   /* bytes of an element */
    size_t count;  /* elements of the vector */
    size_t relay;  /* offset of the scratch space, dt_rail_room elements */
    double factor; /* for the complete sum, and AVG's division besides */
    const struct dt_extent *extents;
    size_t nextents;
    size_t *sent, *got; /* room for n operations each, to work with */
};

typedef size_t dt_rail_fn(const struct dt_rail *rail);

/* Whole vectors with a partner at distance 1, 2, 4 ... */
dt_rail_fn dt_rail_doubling;

/* Halves, quarters ..., then back: Rabenseifner 2004, "Optimization of
 * collective reduction operations". In both, the nodes beyond a power of two
 * lend their share to a partner and get the result back. */
dt_rail_fn dt_rail_halving;

/* Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms". */
dt_rail_fn dt_rail_ring;

/* One half up and down each of two trees; see tree.h. */
dt_rail_fn dt_rail_trees;

/* Elements of scratch space for vectors of count, at most. */
size_t dt_rail_room(dt_rail_fn *algorithm, size_t n, size_t count);

/* factor * and AVG's division on the whole vector, for a rail of one node. */
dt_rail_fn dt_rail_finish;

/* The largest power of two up to n, and the steps to reach it from 1. */
size_t dt_power_of_two(size_t n);
size_t dt_log_two(size_t n);

#endif
