/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* adasum.c - Maleki et al., "Scaling Distributed Training with Adaptive
 * Summation" (2021): two gradients are added less what they have in common,
 *
 *     a (1 - a.b / 2 a.a) + b (1 - a.b / 2 b.b)
 *
 * which is their sum where they are orthogonal, and their mean where they are
 * parallel and equal. */
#include "grad/adasum.h"

#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* a = the adaptive sum of a and b. */
static void add(double *a, const double *b, size_t count)
{
    double ab = dot(a, b, count), aa = dot(a, a, count), bb = dot(b, b, count);
    double of_a = aa > 0 ? 1 - ab / (2 * aa) : 1;
    double of_b = bb > 0 ? 1 - ab / (2 * bb) : 1;
    for (size_t i = 0; i < count; i++)
        a[i] = of_a * a[i] + of_b * b[i];
}

static void widen(double *dst, const void *src, size_t count, dt_dtype_t dtype)
{
    if (dtype == DT_DTYPE_F64)
        memcpy(dst, src, count * sizeof(*dst));
    else
        dt_exec_cast(dst, DT_DTYPE_F64, src, dtype, count);
}

bool dt_adasum(void *out, const void *all, int n, size_t count,
               dt_dtype_t dtype)
{
    size_t size = dt_dtype_size(dtype);
    double *work = malloc((size_t)n * count * sizeof(*work) + 1);
    if (!work)
        return false;
    for (size_t r = 0; r < (size_t)n; r++)
        widen(work + r * count, (const char *)all + r * count * size, count,
              dtype);
    for (size_t step = 1; step < (size_t)n; step *= 2)
        for (size_t r = 0; r + step < (size_t)n; r += 2 * step)
            add(work + r * count, work + (r + step) * count, count);
    if (dtype == DT_DTYPE_F64)
        memcpy(out, work, count * size);
    else
        dt_exec_cast(out, dtype, work, DT_DTYPE_F64, count);
    free(work);
    return true;
}
