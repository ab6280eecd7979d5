/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exact.c - the arithmetic of lib/exec once more, slowly. */
#include "exact.h"

#include <math.h>
#include <string.h>

/* A floating-point type: `digits` with the leading one, the exponents of the
 * least and the greatest normal number, and whether infinity takes the place
 * of the greatest exponent (else only the last code of it is special: NaN). */
struct format {
    int bits, digits, least, greatest;
    bool infinity;
};

static const struct format formats[] = {
    [DT_DTYPE_F16] = {16, 11, -14, 15, true},
    [DT_DTYPE_BF16] = {16, 8, -126, 127, true},
    [DT_DTYPE_F32] = {32, 24, -126, 127, true},
    [DT_DTYPE_F64] = {64, 53, -1022, 1023, true},
    [DT_DTYPE_F8E4M3] = {8, 4, -6, 8, false},
    [DT_DTYPE_F8E5M2] = {8, 3, -14, 15, true},
};

static bool is_int(dt_dtype_t dtype)
{
    return dtype <= DT_DTYPE_I64;
}

static uint64_t get(const void *from, size_t i, dt_dtype_t dtype)
{
    const unsigned char *p = from;
    size_t size = dt_dtype_size(dtype);
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    p += i * size;
    switch (size) {
    case 1:
        memcpy(&u8, p, 1);
        return u8;
    case 2:
        memcpy(&u16, p, 2);
        return u16;
    case 4:
        memcpy(&u32, p, 4);
        return u32;
    default:
        memcpy(&u64, p, 8);
        return u64;
    }
}

static void put(void *to, size_t i, dt_dtype_t dtype, uint64_t bits)
{
    size_t size = dt_dtype_size(dtype);
    char *p = (char *)to + i * size;
    uint8_t u8 = (uint8_t)bits;
    uint16_t u16 = (uint16_t)bits;
    uint32_t u32 = (uint32_t)bits;
    memcpy(p,
           size == 1   ? (void *)&u8
           : size == 2 ? (void *)&u16
           : size == 4 ? (void *)&u32
                       : (void *)&bits,
           size);
}

/* x, to nearest even, among the numbers of a type */
static double rounded(double x, dt_dtype_t dtype)
{
    const struct format *f = &formats[dtype];
    if (x == 0 || !isfinite(x))
        return isinf(x) && !f->infinity ? NAN : x;
    int exponent = ilogb(x) > f->least ? ilogb(x) : f->least;
    double steps = rint(ldexp(x, f->digits - 1 - exponent));
    double y = ldexp(steps, exponent + 1 - f->digits);
    double ones = ldexp(1, f->digits) - (f->infinity ? 1 : 2);
    if (fabs(y) <= ldexp(ones, f->greatest + 1 - f->digits))
        return y;
    return f->infinity ? copysign(INFINITY, x) : NAN;
}

static uint64_t encode(double x, dt_dtype_t dtype)
{
    const struct format *f = &formats[dtype];
    uint64_t one = (uint64_t)1 << (f->digits - 1);
    uint64_t sign = (uint64_t)(signbit(x) != 0) << (f->bits - 1);
    uint64_t top = (uint64_t)(f->greatest - f->least + 2) * one;
    if (isnan(x))
        return f->infinity ? top | one >> 1 : top - 1;
    if (isinf(x))
        return sign | top;
    if (fabs(x) < ldexp(1, f->least))
        return sign | (uint64_t)ldexp(fabs(x), f->digits - 1 - f->least);
    uint64_t whole = (uint64_t)ldexp(fabs(x), f->digits - 1 - ilogb(x));
    return sign | ((uint64_t)(ilogb(x) - f->least + 1) * one + whole - one);
}

static double decode(uint64_t bits, dt_dtype_t dtype)
{
    const struct format *f = &formats[dtype];
    uint64_t one = (uint64_t)1 << (f->digits - 1);
    uint64_t sign = bits >> (f->bits - 1);
    uint64_t magnitude = bits - (sign << (f->bits - 1));
    uint64_t top = (uint64_t)(f->greatest - f->least + 2) * one;
    double x;
    if (f->infinity ? magnitude > top : magnitude == top - 1)
        return NAN;
    if (f->infinity && magnitude == top)
        x = INFINITY;
    else if (magnitude < one)
        x = ldexp((double)magnitude, f->least + 1 - f->digits);
    else
        x = ldexp((double)(magnitude % one + one),
                  (int)(magnitude / one) - 1 + f->least + 1 - f->digits);
    return sign ? -x : x;
}

static int64_t as_int(uint64_t bits, dt_dtype_t dtype)
{
    return dtype == DT_DTYPE_I8    ? (int8_t)bits
           : dtype == DT_DTYPE_U8  ? (uint8_t)bits
           : dtype == DT_DTYPE_I32 ? (int32_t)bits
                                   : (int64_t)bits;
}

static int64_t int_step(int64_t a, int64_t b, dt_op_t op)
{
    switch (op) {
    case DT_OP_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case DT_OP_MIN:
        return b < a ? b : a;
    case DT_OP_MAX:
        return b > a ? b : a;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

/* F64 arithmetic on F32 numbers has more than twice their digits, and one more
 * pair: to round its result again is to round the exact one */
static double float_step(double a, double b, dt_op_t op, dt_dtype_t wide)
{
    switch (op) {
    case DT_OP_PROD:
        return rounded(a * b, wide);
    case DT_OP_MIN:
        return isnan(a) || isnan(b) ? NAN : b < a ? b : a;
    case DT_OP_MAX:
        return isnan(a) || isnan(b) ? NAN : b > a ? b : a;
    default:
        return rounded(a + b, wide);
    }
}

static dt_dtype_t wide_of(dt_dtype_t dtype)
{
    return dtype == DT_DTYPE_F64 ? DT_DTYPE_F64 : DT_DTYPE_F32;
}

void exact_fold(void *dst, const void *const *in, size_t n, size_t count,
                dt_dtype_t dtype, dt_op_t op, double scale)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t first = get(in[0], i, dtype);
        if (is_int(dtype)) {
            int64_t a = as_int(first, dtype);
            for (size_t k = 1; k < n; k++) {
                int64_t b = as_int(get(in[k], i, dtype), dtype);
                a = as_int((uint64_t)int_step(a, b, op), dtype);
            }
            put(dst, i, dtype, (uint64_t)a);
            continue;
        }
        dt_dtype_t wide = wide_of(dtype);
        double a = decode(first, dtype);
        for (size_t k = 1; k < n; k++)
            a = float_step(a, decode(get(in[k], i, dtype), dtype), op, wide);
        a = rounded(a * rounded(scale, wide), wide);
        put(dst, i, dtype, encode(rounded(a, dtype), dtype));
    }
}

void exact_cast(void *dst, dt_dtype_t to, const void *src, dt_dtype_t from,
                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double x = decode(get(src, i, from), from);
        put(dst, i, to, encode(rounded(x, to), to));
    }
}

void exact_divide(void *buf, size_t count, dt_dtype_t dtype, size_t divisor)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = get(buf, i, dtype);
        if (is_int(dtype)) {
            int64_t a = as_int(bits, dtype) / (int64_t)divisor;
            put(buf, i, dtype, (uint64_t)a);
            continue;
        }
        dt_dtype_t wide = wide_of(dtype);
        double d = rounded((double)divisor, wide);
        double a = rounded(decode(bits, dtype) / d, wide);
        put(buf, i, dtype, encode(rounded(a, dtype), dtype));
    }
}
