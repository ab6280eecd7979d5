/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shape.h - what a collective is, but for its buffers. */
#ifndef DT_COLL_ALGORITHM_SHAPE_H
#define DT_COLL_ALGORITHM_SHAPE_H

#include "base/names.h"

/* Equal shapes share one schedule, unless they have counts of their own. */
struct dt_shape {
    enum dt_coll coll;
    dt_dtype_t dtype;
    dt_op_t op;
    size_t count; /* elements; as in dt.h, of one block where there are some */
    size_t root;
    bool in_place;
    double prescale, postscale; /* 1.0 but for dt_allreduce_scaled */
    /* Uneven forms, else NULL: elements, one entry per rank. ALLGATHER: what
     * each gives, and where it goes in the receive buffer. REDUCE_SCATTER: what
     * each gets. ALLTOALL: all four. Segments of even ones have displacements
     * alone, on the side that has blocks; request.c. */
    const size_t *sendcounts, *senddispls, *recvcounts, *recvdispls;
};

/* Is it a message between two ranks? */
static inline bool dt_shape_is_message(const struct dt_shape *shape)
{
    return shape->coll == DT_COLL_SEND || shape->coll == DT_COLL_RECV;
}

#endif
