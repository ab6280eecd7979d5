/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* names.c - the names of collectives, element types and reductions. */
#include "base/names.h"

static const char *const colls[] = {
    [DT_COLL_ALLREDUCE] = "allreduce",
    [DT_COLL_REDUCE] = "reduce",
    [DT_COLL_BCAST] = "bcast",
    [DT_COLL_ALLGATHER] = "allgather",
    [DT_COLL_REDUCE_SCATTER] = "reduce_scatter",
    [DT_COLL_ALLTOALL] = "alltoall",
    [DT_COLL_GATHER] = "gather",
    [DT_COLL_SCATTER] = "scatter",
    [DT_COLL_SEND] = "send",
    [DT_COLL_RECV] = "recv",
};

static const char *const dtypes[] = {
    [DT_DTYPE_I8] = "i8",         [DT_DTYPE_U8] = "u8",
    [DT_DTYPE_I32] = "i32",       [DT_DTYPE_I64] = "i64",
    [DT_DTYPE_F16] = "f16",       [DT_DTYPE_BF16] = "bf16",
    [DT_DTYPE_F32] = "f32",       [DT_DTYPE_F64] = "f64",
    [DT_DTYPE_F8E4M3] = "f8e4m3", [DT_DTYPE_F8E5M2] = "f8e5m2",
};

static const char *const ops[] = {
    [DT_OP_SUM] = "sum", [DT_OP_MIN] = "min",   [DT_OP_MAX] = "max",
    [DT_OP_AVG] = "avg", [DT_OP_PROD] = "prod",
};

const char *dt_name_coll(enum dt_coll coll)
{
    size_t i = (size_t)coll;
    return i < sizeof(colls) / sizeof(colls[0]) ? colls[i] : NULL;
}

const char *dt_name_dtype(dt_dtype_t dtype)
{
    size_t i = (size_t)dtype;
    return i < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[i] : NULL;
}

const char *dt_name_op(dt_op_t op)
{
    size_t i = (size_t)op;
    return i < sizeof(ops) / sizeof(ops[0]) ? ops[i] : NULL;
}
