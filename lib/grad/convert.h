/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* convert.h - a gradient on its way in and out: factors, and another type. */
#ifndef DT_GRAD_CONVERT_H
#define DT_GRAD_CONVERT_H

#include "dt.h"

/* dst[i] = (wire) (factor * src[i]), count elements; the factor is applied in
 * F64 to F64 and to integers, else in F32. dst may be src where both have the
 * same type. */
void dt_convert_in(void *dst, dt_dtype_t wire, const void *src,
                   dt_dtype_t dtype, size_t count, double factor);

/* dst[i] = factor * ((dtype) src[i]) / divisor; integers are truncated towards
 * zero once. dst may be src where both have the same type. */
void dt_convert_out(void *dst, dt_dtype_t dtype, const void *src,
                    dt_dtype_t wire, size_t count, double factor,
                    size_t divisor);

#endif
