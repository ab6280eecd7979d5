/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* convert.c - casts. Types of 8 and 16 bits are converted by way
 * of F32, in parts that stay in the first-level cache. */
#include "exec/exec.h"

#include <math.h>
#include <string.h>

#include "exec/kernels.h"

enum { PART = 1024 };

/* elements of a buffer that may not be aligned */
#define ANYWHERE __attribute__((aligned(1), may_alias))
typedef float any_f32 ANYWHERE;
typedef double any_f64 ANYWHERE;

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Round to odd (Boldo and Melquiond 2008): an inexact result has its last bit
 * set. Rounding it to nearest, to at least two bits fewer, gives the same as
 * rounding x once; two roundings to nearest would not. */
static float to_odd(double x)
{
    float near = (float)x;
    uint32_t bits;
    memcpy(&bits, &near, sizeof(bits));
    if ((double)near == x)
        return near;
    if (fabs((double)near) > fabs(x))
        bits--;
    bits |= 1;
    memcpy(&near, &bits, sizeof(near));
    return near;
}

static void narrow_f64(void *dst, dt_dtype_t to, const void *src, size_t count)
{
    const any_f64 *x = src;
    any_f32 *y = dst;
    float wide[PART];
    if (to == DT_DTYPE_F32) {
        for (size_t i = 0; i < count; i++)
            y[i] = isnan(x[i]) ? NAN : (float)x[i];
        return;
    }
    for (size_t i = 0; i < count; i++)
        wide[i] = isnan(x[i]) ? NAN : to_odd(x[i]);
    dt_exec_kernels()->narrow[to](dst, wide, count);
}

/* Cast at most PART elements; the types differ. */
static void cast_part(void *dst, dt_dtype_t to, const void *src,
                      dt_dtype_t from, size_t count)
{
    const struct dt_exec_kernels *kernels = dt_exec_kernels();
    float wide[PART];
    const void *mid = src;
    if (from == DT_DTYPE_F64) {
        narrow_f64(dst, to, src, count);
        return;
    }
    if (from != DT_DTYPE_F32) {
        kernels->widen[from](to == DT_DTYPE_F32 ? dst : wide, src, count);
        mid = wide;
    }
    if (to == DT_DTYPE_F64) {
        const any_f32 *x = mid;
        any_f64 *y = dst;
        for (size_t i = 0; i < count; i++)
            y[i] = isnan(x[i]) ? (double)NAN : (double)x[i];
    } else if (to != DT_DTYPE_F32) {
        kernels->narrow[to](dst, mid, count);
    }
}

void dt_exec_cast(void *dst, dt_dtype_t to, const void *src, dt_dtype_t from,
                  size_t count)
{
    size_t to_size = dt_dtype_size(to), from_size = dt_dtype_size(from);
    if (to == from) {
        memcpy(dst, src, count * to_size);
        return;
    }
    for (size_t i = 0; i < count; i += PART)
        cast_part((char *)dst + i * to_size, to,
                  (const char *)src + i * from_size, from,
                  min_size(count - i, PART));
}
