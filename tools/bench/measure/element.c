/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* element.c - the element types of libdt: their names, limits and values. */
#include "measure/element.h"

#include <math.h>
#include <string.h>

/* Bits of the exponent and the mantissa; 0: an integer. finite: the largest
 * exponent has one NaN and otherwise numbers. */
static const struct {
    const char *name;
    int exponent, mantissa;
    bool finite;
} dtypes[NUMBER_DTYPES] = {
    [DT_DTYPE_I8] = {.name = "int8"},
    [DT_DTYPE_U8] = {.name = "uint8"},
    [DT_DTYPE_I32] = {.name = "int32"},
    [DT_DTYPE_I64] = {.name = "int64"},
    [DT_DTYPE_F16] = {"half", 5, 10, false},
    [DT_DTYPE_BF16] = {"bfloat16", 8, 7, false},
    [DT_DTYPE_F32] = {"float", 8, 23, false},
    [DT_DTYPE_F64] = {"double", 11, 52, false},
    [DT_DTYPE_F8E4M3] = {"f8e4m3", 4, 3, true},
    [DT_DTYPE_F8E5M2] = {"f8e5m2", 5, 2, false},
};

static const char *const ops[NUMBER_OPS] = {
    [DT_OP_SUM] = "sum", [DT_OP_PROD] = "prod", [DT_OP_MIN] = "min",
    [DT_OP_MAX] = "max", [DT_OP_AVG] = "avg",
};

const char *dtype_name(dt_dtype_t dtype)
{
    return dtypes[dtype].name;
}

const char *op_name(dt_op_t op)
{
    return ops[op];
}

bool dtype_by_name(const char *name, dt_dtype_t *dtype)
{
    for (int i = 0; i < NUMBER_DTYPES; i++)
        if (!strcmp(name, dtypes[i].name)) {
            *dtype = (dt_dtype_t)i;
            return true;
        }
    return false;
}

bool op_by_name(const char *name, dt_op_t *op)
{
    for (int i = 0; i < NUMBER_OPS; i++)
        if (!strcmp(name, ops[i])) {
            *op = (dt_op_t)i;
            return true;
        }
    return false;
}

bool dtype_is_float(dt_dtype_t dtype)
{
    return dtypes[dtype].exponent > 0;
}

bool dtype_is_signed(dt_dtype_t dtype)
{
    return dtype != DT_DTYPE_U8;
}

int64_t dtype_exact(dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_DTYPE_I8:
        return INT8_MAX;
    case DT_DTYPE_U8:
        return UINT8_MAX;
    case DT_DTYPE_I32:
        return INT32_MAX;
    case DT_DTYPE_I64:
        return INT64_C(1) << 53; /* that of double, which we count in */
    default:
        return INT64_C(1) << (dtypes[dtype].mantissa + 1);
    }
}

/* ---- floating point, in as many bits as a type has ---- */

static uint64_t pack(dt_dtype_t dtype, double value)
{
    int mantissa = dtypes[dtype].mantissa, exponent = dtypes[dtype].exponent;
    int bias = (1 << (exponent - 1)) - 1, power;
    uint64_t sign = signbit(value) ? 1 : 0;
    double fraction = frexp(fabs(value), &power); /* in [0.5, 1) */
    uint64_t rest = 0, high = 0;
    if (fraction > 0 && power - 1 + bias > 0) {
        high = (uint64_t)(power - 1 + bias);
        rest = (uint64_t)ldexp(fraction * 2 - 1, mantissa);
    } else if (fraction > 0) { /* subnormal */
        rest = (uint64_t)ldexp(fabs(value), bias - 1 + mantissa);
    }
    return sign << (exponent + mantissa) | high << mantissa | rest;
}

static double unpack(dt_dtype_t dtype, uint64_t bits)
{
    int mantissa = dtypes[dtype].mantissa, exponent = dtypes[dtype].exponent;
    int bias = (1 << (exponent - 1)) - 1;
    uint64_t most = (UINT64_C(1) << exponent) - 1;
    uint64_t all = (UINT64_C(1) << mantissa) - 1;
    uint64_t rest = bits & all, high = bits >> mantissa & most;
    double sign = bits >> (exponent + mantissa) & 1 ? -1 : 1;
    if (high == most && (!dtypes[dtype].finite || rest == all))
        return rest ? NAN : sign * INFINITY;
    if (!high)
        return sign * ldexp((double)rest, 1 - bias - mantissa);
    return sign *
           ldexp((double)(rest | (all + 1)), (int)high - bias - mantissa);
}

/* The bits are stored as an unsigned integer of that size. */
static void put_bits(void *at, size_t size, uint64_t bits)
{
    uint8_t bits8 = (uint8_t)bits;
    uint16_t bits16 = (uint16_t)bits;
    uint32_t bits32 = (uint32_t)bits;
    memcpy(at,
           size == 1   ? (void *)&bits8
           : size == 2 ? (void *)&bits16
           : size == 4 ? (void *)&bits32
                       : (void *)&bits,
           size);
}

static uint64_t get_bits(const void *at, size_t size)
{
    uint8_t bits8;
    uint16_t bits16;
    uint32_t bits32;
    uint64_t bits64;
    switch (size) {
    case 1:
        memcpy(&bits8, at, size);
        return bits8;
    case 2:
        memcpy(&bits16, at, size);
        return bits16;
    case 4:
        memcpy(&bits32, at, size);
        return bits32;
    default:
        memcpy(&bits64, at, sizeof(bits64));
        return bits64;
    }
}

void number_store(void *at, dt_dtype_t dtype, double value)
{
    put_bits(at, dt_dtype_size(dtype),
             dtype_is_float(dtype) ? pack(dtype, value)
                                   : (uint64_t)(int64_t)value);
}

double number_load(const void *at, dt_dtype_t dtype)
{
    uint64_t bits = get_bits(at, dt_dtype_size(dtype));
    switch (dtype) {
    case DT_DTYPE_I8:
        return (int8_t)bits;
    case DT_DTYPE_I32:
        return (int32_t)bits;
    case DT_DTYPE_I64:
        return (double)(int64_t)bits;
    case DT_DTYPE_U8:
        return (double)bits;
    default:
        return unpack(dtype, bits);
    }
}
