/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* names.h - the names of collectives, element types and reductions. */
#ifndef DT_BASE_NAMES_H
#define DT_BASE_NAMES_H

#include "dt.h"

/* A barrier is an allreduce of one number. Send and receive have a peer, which
 * is kept as their root. */
enum dt_coll {
    DT_COLL_ALLREDUCE,
    DT_COLL_REDUCE,
    DT_COLL_BCAST,
    DT_COLL_ALLGATHER,
    DT_COLL_REDUCE_SCATTER,
    DT_COLL_ALLTOALL,
    DT_COLL_GATHER,
    DT_COLL_SCATTER,
    DT_COLL_SEND,
    DT_COLL_RECV,
};
#define DT_COLLS (DT_COLL_RECV + 1)

/* "allgather", "f32", "sum" and so on; NULL if the value has no name. */
const char *dt_name_coll(enum dt_coll coll);
const char *dt_name_dtype(dt_dtype_t dtype);
const char *dt_name_op(dt_op_t op);

#endif
