/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exec.h - arithmetic on host memory: what a schedule does to its buffers.
 *
 * Every function is pure but for its destination, and any thread may call it.
 * Pointers need only the alignment of char. The kernels are chosen once, by
 * what the processor can do; all of them give the same bits. */
#ifndef DT_EXEC_EXEC_H
#define DT_EXEC_EXEC_H

#include <stdbool.h>

#include "dt.h"

/* Is this pair implemented? All types with SUM, PROD, MIN, MAX and AVG. */
bool dt_exec_supports(dt_dtype_t dtype, dt_op_t op);

/* Is this a floating-point type, which dt_exec_scale takes? */
bool dt_exec_is_float(dt_dtype_t dtype);

/* dst[i] = scale * (in[0][i] op in[1][i] op ... op in[n-1][i]), count elements,
 * from left to right; n >= 1. dst may be one of the inputs, else they are
 * apart. AVG adds; dt_exec_divide does the rest. Types of 8 and 16 bits are
 * computed in F32 from the first to the last input and rounded once, to
 * nearest even; integers wrap. MIN and MAX give NaN if an operand is one, and
 * the leftmost of operands that compare equal. scale is 1.0 for integers, and
 * for MIN, MAX and PROD; on F64 it is applied in F64, else in F32. */
void dt_exec_fold(void *dst, const void *const *in, size_t n, size_t count,
                  dt_dtype_t dtype, dt_op_t op, double scale);

/* n >= 1 places. past: it is too much for the caches, so write past them, where
 * the processor can and the places are aligned; the writes are ordered before
 * any that follow. */
struct dt_exec_out {
    void *const *at;
    size_t n;
    bool past;
};

/* dt_exec_fold into each of these places, which are apart. */
void dt_exec_fold_to(const struct dt_exec_out *out, const void *const *in,
                     size_t n, size_t count, dt_dtype_t dtype, dt_op_t op,
                     double scale);

/* dst[i] = a[i] op b[i]: dt_exec_fold of two with scale 1. */
void dt_exec_reduce(void *dst, const void *a, const void *b, size_t count,
                    dt_dtype_t dtype, dt_op_t op);

/* dst[i] = factor * src[i]; a floating-point type, and dst may be src. */
void dt_exec_scale(void *dst, const void *src, size_t count, dt_dtype_t dtype,
                   double factor);

/* buf[i] /= divisor; integers are truncated towards zero. */
void dt_exec_divide(void *buf, size_t count, dt_dtype_t dtype, size_t divisor);

/* dst[i] = (to) src[i] between floating-point types, rounded to nearest even;
 * what is too large becomes infinite, or, where the type has none (F8E4M3), a
 * NaN. dst and src are apart. */
void dt_exec_cast(void *dst, dt_dtype_t to, const void *src, dt_dtype_t from,
                  size_t count);

/* The kernels in use: "avx512", "avx2", "neon" or "portable". */
const char *dt_exec_name(void);

#endif
