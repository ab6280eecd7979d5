/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* types.c - which element types and operations are supported; apart from the
 * kernels, for libraries that have kernels of their own. */
#include "exec/exec.h"
#include "exec/kernels.h"

bool dt_exec_supports(dt_dtype_t dtype, dt_op_t op)
{
    return (unsigned)dtype < DT_EXEC_NDTYPES && (unsigned)op < DT_EXEC_NOPS;
}

bool dt_exec_is_float(dt_dtype_t dtype)
{
    return dtype >= DT_DTYPE_F16 && dtype <= DT_DTYPE_F8E5M2;
}
