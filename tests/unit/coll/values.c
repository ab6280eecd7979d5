/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* values.c - numbers whose sums are exact, and how they look. */
#include <math.h>
#include <string.h>

#include "ranks.h"

static bool is_integer(dt_dtype_t dtype)
{
    return dtype == DT_DTYPE_I8 || dtype == DT_DTYPE_U8 ||
           dtype == DT_DTYPE_I32 || dtype == DT_DTYPE_I64;
}

/* The values of a type are up to so far from those in the middle. */
static int most_of(dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_DTYPE_F8E4M3:
    case DT_DTYPE_F8E5M2:
        return 1;
    case DT_DTYPE_I8:
        return 5;
    case DT_DTYPE_U8:
    case DT_DTYPE_F16:
    case DT_DTYPE_BF16:
        return 10;
    default:
        return 100;
    }
}

double value_of(dt_dtype_t dtype, dt_op_t op, int rank, size_t i)
{
    size_t r = (size_t)rank;
    int most = most_of(dtype), above = dtype == DT_DTYPE_U8 ? most : 0;
    if (op == DT_OP_PROD) {
        if ((i + r) % 4 == 0)
            return dtype == DT_DTYPE_U8 ? 3 : -1;
        return r < 2 && i % 3 == 0 ? 2 : 1;
    }
    return (int)((i * 7 + r * 3 + i / 50 * r) % (size_t)(2 * most + 1)) - most +
           above;
}

size_t value_period(dt_dtype_t dtype, dt_op_t op)
{
    return op == DT_OP_PROD ? 12 : 50 * (size_t)(2 * most_of(dtype) + 1);
}

static double combine(dt_op_t op, double a, double b)
{
    switch (op) {
    case DT_OP_MIN:
        return b < a ? b : a;
    case DT_OP_MAX:
        return b > a ? b : a;
    case DT_OP_PROD:
        return a * b;
    default:
        return a + b;
    }
}

double value_reduced(dt_dtype_t dtype, dt_op_t op, int size, size_t i,
                     double post)
{
    double value = value_of(dtype, op, 0, i);
    for (int r = 1; r < size; r++)
        value = combine(op, value, value_of(dtype, op, r, i));
    if (op == DT_OP_AVG && is_integer(dtype))
        value = trunc(value / size);
    else if (op == DT_OP_AVG && dtype == DT_DTYPE_F64)
        value = value / size;
    else if (op == DT_OP_AVG)
        value = (float)value / (float)size;
    return value * post;
}

/* Sign, exponent and mantissa of a number within the range of the type. */
static uint32_t encode(double value, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, e;
    uint32_t sign = signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
    double size = fabs(value);
    frexp(size, &e);
    e -= 1; /* size is in [2^e, 2^(e+1)) */
    if (size == 0)
        return sign;
    if (e < 1 - bias)
        e = 1 - bias; /* subnormal: no leading one */
    uint32_t mantissa = (uint32_t)nearbyint(ldexp(size, mantissa_bits - e));
    return sign | (((uint32_t)(e + bias - 1) << mantissa_bits) + mantissa);
}

void value_put(void *buf, size_t i, dt_dtype_t dtype, double value)
{
    int64_t whole = (int64_t)value;
    float single = (float)value;
    uint32_t bits = 0;
    const void *from = &bits;
    switch (dtype) {
    case DT_DTYPE_I8:
    case DT_DTYPE_U8:
    case DT_DTYPE_I32:
    case DT_DTYPE_I64:
        from = &whole; /* its low bytes come first */
        break;
    case DT_DTYPE_F64:
        from = &value;
        break;
    case DT_DTYPE_F32:
        from = &single;
        break;
    case DT_DTYPE_F16:
        bits = encode(value, 5, 10);
        break;
    case DT_DTYPE_BF16:
        bits = encode(value, 8, 7);
        break;
    case DT_DTYPE_F8E4M3:
        bits = encode(value, 4, 3);
        break;
    case DT_DTYPE_F8E5M2:
        bits = encode(value, 5, 2);
        break;
    }
    size_t elem = dt_dtype_size(dtype);
    memcpy((char *)buf + i * elem, from, elem);
}

void value_fill(void *buf, size_t len, unsigned seed)
{
    unsigned char *bytes = buf;
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 12345u, word = 0;
    size_t i = 0;
    for (; i < len; i += sizeof(word)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        word = state ^ state >> 29;
        if (len - i < sizeof(word))
            break;
        memcpy(bytes + i, &word, sizeof(word));
    }
    if (i < len)
        memcpy(bytes + i, &word, len - i);
}
