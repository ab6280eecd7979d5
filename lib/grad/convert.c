/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* convert.c - factors and types, block by block, so that what is written in one
 * pass is in the cache for the next. */
#include "grad/convert.h"

#include <stdint.h>
#include <string.h>

#include "exec/exec.h"

#define BLOCK 2048 /* elements */

#define SCALE(type)                                                            \
    for (size_t i = 0; i < count; i++)                                         \
    ((type *)dst)[i] = (type)((double)((const type *)src)[i] * factor)

/* dst = factor * src, integers truncated towards zero. */
static void scale_integers(void *dst, const void *src, size_t count,
                           dt_dtype_t dtype, double factor)
{
    if (dtype == DT_DTYPE_I8)
        SCALE(int8_t);
    else if (dtype == DT_DTYPE_U8)
        SCALE(uint8_t);
    else if (dtype == DT_DTYPE_I32)
        SCALE(int32_t);
    else
        SCALE(int64_t);
}

static void scale(void *dst, const void *src, size_t count, dt_dtype_t dtype,
                  double factor)
{
    if (dt_exec_is_float(dtype))
        dt_exec_scale(dst, src, count, dtype, factor);
    else
        scale_integers(dst, src, count, dtype, factor);
}

void dt_convert_in(void *dst, dt_dtype_t wire, const void *src,
                   dt_dtype_t dtype, size_t count, double factor)
{
    double block[BLOCK]; /* of the largest type */
    size_t in = dt_dtype_size(dtype), out = dt_dtype_size(wire);
    if (wire == dtype && factor == 1.0) {
        if (dst != src)
            memcpy(dst, src, count * in);
        return;
    }
    if (wire == dtype) {
        scale(dst, src, count, dtype, factor);
        return;
    }
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;
        const void *from = (const char *)src + i * in;
        if (factor != 1.0) {
            scale(block, from, n, dtype, factor);
            from = block;
        }
        dt_exec_cast((char *)dst + i * out, wire, from, dtype, n);
    }
}

void dt_convert_out(void *dst, dt_dtype_t dtype, const void *src,
                    dt_dtype_t wire, size_t count, double factor,
                    size_t divisor)
{
    size_t in = dt_dtype_size(wire), out = dt_dtype_size(dtype);
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;
        const void *from = (const char *)src + i * in;
        void *to = (char *)dst + i * out;
        if (wire != dtype)
            dt_exec_cast(to, dtype, from, wire, n);
        else if (to != from)
            memcpy(to, from, n * out);
        if (!dt_exec_is_float(dtype) && factor != 1.0) {
            scale_integers(to, to, n, dtype, factor / (double)divisor);
            continue;
        }
        if (factor != 1.0)
            dt_exec_scale(to, to, n, dtype, factor);
        if (divisor > 1)
            dt_exec_divide(to, n, dtype, divisor);
    }
}
