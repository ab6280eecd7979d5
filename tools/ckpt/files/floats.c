/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* floats.c - the values of floating-point elements. */
#include "files/floats.h"

#include <math.h>
#include <string.h>

bool is_float(dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_DTYPE_F16:
    case DT_DTYPE_BF16:
    case DT_DTYPE_F32:
    case DT_DTYPE_F64:
    case DT_DTYPE_F8E4M3:
    case DT_DTYPE_F8E5M2:
        return true;
    default:
        return false;
    }
}

/* A sign, exponent bits and fraction bits, as IEEE 754 has them. infinite: the
 * highest exponent is no number; else only its highest fraction, a NaN. */
static double small_float(unsigned bits, int exponent, int fraction,
                          bool infinite)
{
    unsigned top = (1u << exponent) - 1, mask = (1u << fraction) - 1;
    unsigned e = bits >> fraction & top, f = bits & mask;
    double sign = bits >> (exponent + fraction) & 1 ? -1 : 1;
    int bias = (1 << (exponent - 1)) - 1;
    if (e == top && (infinite ? f > 0 : f == mask))
        return NAN;
    if (e == top && infinite)
        return sign * INFINITY;
    if (e == 0)
        return sign * ldexp(f, 1 - bias - fraction);
    return sign * ldexp(f + (1u << fraction), (int)e - bias - fraction);
}

double float_get(dt_dtype_t dtype, const void *data, size_t i)
{
    const unsigned char *at =
        (const unsigned char *)data + i * dt_dtype_size(dtype);
    uint16_t half;
    float single;
    double value;
    switch (dtype) {
    case DT_DTYPE_F16:
        memcpy(&half, at, sizeof(half));
        return small_float(half, 5, 10, true);
    case DT_DTYPE_BF16:
        memcpy(&half, at, sizeof(half));
        return small_float(half, 8, 7, true);
    case DT_DTYPE_F32:
        memcpy(&single, at, sizeof(single));
        return (double)single;
    case DT_DTYPE_F64:
        memcpy(&value, at, sizeof(value));
        return value;
    case DT_DTYPE_F8E4M3:
        return small_float(*at, 4, 3, false);
    case DT_DTYPE_F8E5M2:
        return small_float(*at, 5, 2, true);
    default:
        return NAN;
    }
}
