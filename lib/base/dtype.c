/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dtype.c - the sizes of the element types. */
#include "dt.h"

size_t dt_dtype_size(dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_DTYPE_I8:
    case DT_DTYPE_U8:
    case DT_DTYPE_F8E4M3:
    case DT_DTYPE_F8E5M2:
        return 1;
    case DT_DTYPE_F16:
    case DT_DTYPE_BF16:
        return 2;
    case DT_DTYPE_I32:
    case DT_DTYPE_F32:
        return 4;
    case DT_DTYPE_I64:
    case DT_DTYPE_F64:
        return 8;
    }
    return 0;
}
