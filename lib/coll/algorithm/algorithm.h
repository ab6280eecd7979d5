/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* algorithm.h - the algorithms: each adds this rank's part of one collective
 * to a schedule. All that they know is here; every rank comes to the same
 * choices from the same layout, shape and parameters. */
#ifndef DT_COLL_ALGORITHM_ALGORITHM_H
#define DT_COLL_ALGORITHM_ALGORITHM_H

#include "coll/algorithm/layout.h"
#include "coll/algorithm/sched.h"
#include "coll/algorithm/shape.h"
#include "coll/algorithm/uneven.h"
#include "tune/tune.h"

struct dt_plan {
    struct dt_sched *sched;
    const struct dt_layout *layout;
    const struct dt_shape *shape;
    const struct dt_tune *tune;
    const char *forced; /* NULL; in tests: the name of the algorithm to take
                         * where it serves */
    const struct dt_algorithm *algorithm; /* whose functions are called */
};

typedef void dt_build_fn(const struct dt_plan *plan);

/* The choice among the algorithms of shape->coll, by their predicted costs. */
void dt_algorithm_build(const struct dt_plan *plan);

/* Elements that one schedule should cover, at most, so that its operations do
 * not take the memory that the data needs: the length of a segment. All of them
 * in the uneven forms. */
size_t dt_algorithm_segment(const struct dt_plan *plan);

/* One algorithm of a table that ends with a NULL name. */
struct dt_algorithm {
    const char *name;
    /* Predicted seconds; infinite where it does not serve. */
    double (*cost)(const struct dt_plan *plan);
    dt_build_fn *build;
    unsigned variant; /* where several share these functions: which it is */
};

/* The algorithms of a collective; NULL for SEND and RECV. */
const struct dt_algorithm *dt_algorithms(enum dt_coll coll);

/* The name of the one dt_algorithm_build takes. */
const char *dt_algorithm_name(const struct dt_plan *plan);

/* The tables, for dt_algorithms. */
extern const struct dt_algorithm dt_allreduce_table[];
extern const struct dt_algorithm dt_reduce_table[];
extern const struct dt_algorithm dt_bcast_table[];
extern const struct dt_algorithm dt_allgather_table[];
extern const struct dt_algorithm dt_reduce_scatter_table[];
extern const struct dt_algorithm dt_alltoall_table[];
extern const struct dt_algorithm dt_gather_table[];

static inline size_t dt_at_least(size_t value, size_t least)
{
    return value < least ? least : value;
}

static inline size_t dt_ceiling(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

#endif
