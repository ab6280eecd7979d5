/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exec.h - arithmetic on host memory: what a schedule does to its buffers. */
#ifndef DT_EXEC_EXEC_H
#define DT_EXEC_EXEC_H

#include "dt.h"

/* Is this pair implemented? */
bool dt_exec_supports(dt_dtype_t dtype, dt_op_t op);

/* dst[i] = a[i] op b[i] for count elements; AVG adds, dt_exec_divide does the
 * rest. dst may be a or b. MIN and MAX give NaN if one of the two is, and a
 * if they compare equal. BF16 is computed in F32 and rounded to nearest even;
 * integers wrap. */
void dt_exec_reduce(void *dst, const void *a, const void *b, size_t count,
                    dt_dtype_t dtype, dt_op_t op);

/* buf[i] /= divisor; integers are truncated towards zero. */
void dt_exec_divide(void *buf, size_t count, dt_dtype_t dtype, size_t divisor);

#endif
