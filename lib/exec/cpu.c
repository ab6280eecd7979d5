/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cpu.c - element-wise arithmetic, one plain loop per type and operation,
 * for the compiler to vectorise. */
#include "exec/exec.h"

#include <string.h>

typedef void reduce_fn(void *, const void *, const void *, size_t);

#define ADD(x, y) ((x) + (y))
/* a NaN wins */
#define KEEP_MIN(x, y) ((y) < (x) || (y) != (y) ? (y) : (x))
#define KEEP_MAX(x, y) ((y) > (x) || (y) != (y) ? (y) : (x))

/* name: of the function; type: of the memory; wide: of the arithmetic */
#define REDUCE(name, type, wide, load, store, op)                              \
    static void name(void *dst, const void *a, const void *b, size_t count)    \
    {                                                                          \
        type *d = dst;                                                         \
        const type *x = a, *y = b;                                             \
        for (size_t i = 0; i < count; i++) {                                   \
            wide left = load(x[i]), right = load(y[i]);                        \
            d[i] = store(op(left, right));                                     \
        }                                                                      \
    }

#define SAME(x) (x)

static inline float bf16_to_f32(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint16_t bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* keep a NaN one */
    bits += 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

REDUCE(sum_i32, uint32_t, uint32_t, SAME, SAME, ADD)
REDUCE(min_i32, int32_t, int32_t, SAME, SAME, KEEP_MIN)
REDUCE(max_i32, int32_t, int32_t, SAME, SAME, KEEP_MAX)
REDUCE(sum_i64, uint64_t, uint64_t, SAME, SAME, ADD)
REDUCE(min_i64, int64_t, int64_t, SAME, SAME, KEEP_MIN)
REDUCE(max_i64, int64_t, int64_t, SAME, SAME, KEEP_MAX)
REDUCE(sum_f32, float, float, SAME, SAME, ADD)
REDUCE(min_f32, float, float, SAME, SAME, KEEP_MIN)
REDUCE(max_f32, float, float, SAME, SAME, KEEP_MAX)
REDUCE(sum_f64, double, double, SAME, SAME, ADD)
REDUCE(min_f64, double, double, SAME, SAME, KEEP_MIN)
REDUCE(max_f64, double, double, SAME, SAME, KEEP_MAX)
REDUCE(sum_bf16, uint16_t, float, bf16_to_f32, bf16_from_f32, ADD)
REDUCE(min_bf16, uint16_t, float, bf16_to_f32, bf16_from_f32, KEEP_MIN)
REDUCE(max_bf16, uint16_t, float, bf16_to_f32, bf16_from_f32, KEEP_MAX)

#define NDTYPES (DT_DTYPE_F64 + 1)
#define NOPS    (DT_OP_AVG + 1)

static reduce_fn *const reduce_table[NDTYPES][NOPS] = {
    [DT_DTYPE_I32] = {sum_i32, min_i32, max_i32, sum_i32},
    [DT_DTYPE_I64] = {sum_i64, min_i64, max_i64, sum_i64},
    [DT_DTYPE_BF16] = {sum_bf16, min_bf16, max_bf16, sum_bf16},
    [DT_DTYPE_F32] = {sum_f32, min_f32, max_f32, sum_f32},
    [DT_DTYPE_F64] = {sum_f64, min_f64, max_f64, sum_f64},
};

bool dt_exec_supports(dt_dtype_t dtype, dt_op_t op)
{
    return (unsigned)dtype < NDTYPES && (unsigned)op < NOPS &&
           reduce_table[dtype][op];
}

void dt_exec_reduce(void *dst, const void *a, const void *b, size_t count,
                    dt_dtype_t dtype, dt_op_t op)
{
    reduce_table[dtype][op](dst, a, b, count);
}

#define DIVIDE(type, wide, load, store)                                        \
    do {                                                                       \
        type *x = buf;                                                         \
        for (size_t i = 0; i < count; i++)                                     \
            x[i] = store(load(x[i]) / (wide)divisor);                          \
    } while (0)

void dt_exec_divide(void *buf, size_t count, dt_dtype_t dtype, size_t divisor)
{
    switch (dtype) {
    case DT_DTYPE_I32:
        DIVIDE(int32_t, int32_t, SAME, SAME);
        break;
    case DT_DTYPE_I64:
        DIVIDE(int64_t, int64_t, SAME, SAME);
        break;
    case DT_DTYPE_BF16:
        DIVIDE(uint16_t, float, bf16_to_f32, bf16_from_f32);
        break;
    case DT_DTYPE_F32:
        DIVIDE(float, float, SAME, SAME);
        break;
    case DT_DTYPE_F64:
        DIVIDE(double, double, SAME, SAME);
        break;
    default:
        break;
    }
}
