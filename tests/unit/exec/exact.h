/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exact.h - the arithmetic of lib/exec once more, slowly: on values, with
 * every rounding spelt out. Arguments as in exec/exec.h. */
#ifndef EXEC_EXACT_H
#define EXEC_EXACT_H

#include "dt.h"

void exact_fold(void *dst, const void *const *in, size_t n, size_t count,
                dt_dtype_t dtype, dt_op_t op, double scale);
void exact_cast(void *dst, dt_dtype_t to, const void *src, dt_dtype_t from,
                size_t count);
void exact_divide(void *buf, size_t count, dt_dtype_t dtype, size_t divisor);

#endif
