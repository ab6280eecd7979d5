/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* algorithm.c - the choice among the algorithms. */
#include "coll/algorithm/algorithm.h"

#include <math.h>
#include <string.h>

#include "coll/algorithm/cut.h"

/* Of one schedule, about. */
#define OPERATIONS 100000

const struct dt_algorithm *dt_algorithms(enum dt_coll coll)
{
    switch (coll) {
    case DT_COLL_ALLREDUCE:
        return dt_allreduce_table;
    case DT_COLL_REDUCE:
        return dt_reduce_table;
    case DT_COLL_BCAST:
        return dt_bcast_table;
    case DT_COLL_ALLGATHER:
        return dt_allgather_table;
    case DT_COLL_REDUCE_SCATTER:
        return dt_reduce_scatter_table;
    case DT_COLL_ALLTOALL:
        return dt_alltoall_table;
    case DT_COLL_GATHER:
    case DT_COLL_SCATTER:
        return dt_gather_table;
    case DT_COLL_SEND:
    case DT_COLL_RECV:
        break;
    }
    return NULL;
}

/* The first of the cheapest; the one that is forced costs nothing. */
static const struct dt_algorithm *choose(const struct dt_plan *plan)
{
    const struct dt_algorithm *table = dt_algorithms(plan->shape->coll);
    const struct dt_algorithm *best = NULL;
    double least = INFINITY;
    for (; table && table->name; table++) {
        struct dt_plan one = *plan;
        one.algorithm = table;
        double cost = table->cost(&one);
        if (!isfinite(cost))
            continue;
        if (plan->forced && !strcmp(plan->forced, table->name))
            return table;
        if (!best || cost < least) {
            best = table;
            least = cost;
        }
    }
    return best;
}

const char *dt_algorithm_name(const struct dt_plan *plan)
{
    const struct dt_algorithm *best = choose(plan);
    return best ? best->name : "none";
}

void dt_algorithm_build(const struct dt_plan *plan)
{
    struct dt_plan one = *plan;
    one.algorithm = choose(plan);
    if (one.algorithm)
        one.algorithm->build(&one);
    else
        plan->sched->failed = true;
}

size_t dt_algorithm_segment(const struct dt_plan *plan)
{
    const struct dt_layout *layout = plan->layout;
    const struct dt_shape *shape = plan->shape;
    size_t most = 0, blocks = 1;
    if (shape->sendcounts || shape->recvcounts)
        return shape->count;
    for (size_t i = 0; i < layout->nnodes; i++)
        most = dt_at_least(most, layout->nodes[i].size);
    if (shape->coll != DT_COLL_ALLREDUCE && shape->coll != DT_COLL_REDUCE &&
        shape->coll != DT_COLL_BCAST)
        blocks = layout->size;
    /* for each piece, a rank has two operations for each rank of its node, and
     * about a dozen others */
    size_t pieces = dt_at_least(OPERATIONS / (2 * (most + 6)), 1);
    size_t slice = pieces * dt_cut_most(plan) / blocks / DT_CUT_BYTES;
    return dt_at_least(slice, 1) * DT_CUT_BYTES / dt_dtype_size(shape->dtype);
}
