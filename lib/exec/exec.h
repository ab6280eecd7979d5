/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exec.h - reductions and conversions on host memory.
 *
 * Any thread may call any function; none keeps state. Buffers need no
 * alignment. The kernels are chosen once, by what the processor supports, and
 * the results of all of them are equal bit for bit. */
#ifndef DT_EXEC_EXEC_H
#define DT_EXEC_EXEC_H

#include <stdbool.h>

#include "dt.h"

/* Is this pair implemented? All types with SUM, PROD, MIN, MAX and AVG. */
bool dt_exec_supports(dt_dtype_t dtype, dt_op_t op);

/* Is this a floating-point type, which dt_exec_scale takes? */
bool dt_exec_is_float(dt_dtype_t dtype);

/* dst[i] = scale * (in[0][i] op in[1][i] op ... op in[n-1][i]), count elements,
 * from left to right; n >= 1. dst may be one of the inputs, but must not
 * overlap one otherwise. AVG only adds: the caller divides, by dt_exec_divide.
 * Types of 8 and 16 bits are reduced in F32 and rounded once, to nearest even;
 * integers wrap. MIN and MAX give NaN if an operand is NaN, and the leftmost of
 * operands that compare equal. scale must be 1.0 for integers, and for MIN, MAX
 * and PROD; it is applied in F64 to F64, else in F32. */
void dt_exec_reduce_n(void *dst, const void *const *in, size_t n, size_t count,
                      dt_dtype_t dtype, dt_op_t op, double scale);

/* n >= 1 destinations. stream: write with non-temporal stores, as for results
 * that are larger than the caches, where the processor has them and the
 * destinations are aligned alike; they are ordered before all later stores.
 * divisor: AVG divides by it on the way, with the bits that dt_exec_divide
 * gives on the rounded sum; 0: AVG only adds. */
struct dt_exec_out {
    void *const *at;
    size_t n;
    bool stream;
    size_t divisor;
};

/* dt_exec_reduce_n into each of these destinations, which must not overlap. */
void dt_exec_reduce_to(const struct dt_exec_out *out, const void *const *in,
                       size_t n, size_t count, dt_dtype_t dtype, dt_op_t op,
                       double scale);

/* dst[i] = a[i] op b[i]: dt_exec_reduce_n of two inputs with scale 1. */
void dt_exec_reduce(void *dst, const void *a, const void *b, size_t count,
                    dt_dtype_t dtype, dt_op_t op);

/* dst[i] = factor * src[i]; a floating-point type, and dst may be src. */
void dt_exec_scale(void *dst, const void *src, size_t count, dt_dtype_t dtype,
                   double factor);

/* buf[i] /= divisor; integers are truncated towards zero. */
void dt_exec_divide(void *buf, size_t count, dt_dtype_t dtype, size_t divisor);

/* dst[i] = (to) src[i] between floating-point types, rounded to nearest even;
 * what is too large becomes infinite, or NaN where the type has no infinity
 * (F8E4M3). dst and src must not overlap. */
void dt_exec_cast(void *dst, dt_dtype_t to, const void *src, dt_dtype_t from,
                  size_t count);

/* The kernels in use: "avx512", "avx2", "neon" or "portable". */
const char *dt_exec_name(void);

#endif
