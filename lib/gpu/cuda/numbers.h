/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* numbers.h - the element types one at a time: what exec/floats.h,
 * exec/loops.h and convert.c do to lanes, with the same bits, on the device.
 *
 * An element is a code of its size in the low bits of 64. dtype and op are
 * constants where these functions are called, and nothing is left of the
 * switches. */
#ifndef DT_GPU_CUDA_NUMBERS_H
#define DT_GPU_CUDA_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dt.h"

#ifdef __CUDACC__
#define FN    static __device__ __forceinline__
#define ALIAS /* the device compiler does not reason by types */
#else
#define FN    static inline __attribute__((always_inline, unused))
#define ALIAS __attribute__((may_alias))
#endif

#define NAN_F32 0x7fc00000u
#define NAN_F64 0x7ff8000000000000u

FN uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

FN float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

FN uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

FN double f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

FN size_t size_of(int dtype)
{
    switch (dtype) {
    case DT_DTYPE_I32:
    case DT_DTYPE_F32:
        return 4;
    case DT_DTYPE_I64:
    case DT_DTYPE_F64:
        return 8;
    case DT_DTYPE_F16:
    case DT_DTYPE_BF16:
        return 2;
    default:
        return 1;
    }
}

/* ---- in memory, aligned to its size ---- */

typedef uint16_t ALIAS code16;
typedef uint32_t ALIAS code32;
typedef uint64_t ALIAS code64;

FN uint64_t load_code(const char *p, size_t size)
{
    if (size == 8)
        return *(const code64 *)p;
    if (size == 4)
        return *(const code32 *)p;
    if (size == 2)
        return *(const code16 *)p;
    return *(const uint8_t *)p;
}

FN void store_code(char *p, size_t size, uint64_t code)
{
    if (size == 8)
        *(code64 *)p = code;
    else if (size == 4)
        *(code32 *)p = (uint32_t)code;
    else if (size == 2)
        *(code16 *)p = (uint16_t)code;
    else
        *(uint8_t *)p = (uint8_t)code;
}

/* ---- 8 and 16 bits ---- */

/* A type of `bits` bits with `fraction` bits of fraction; the exponent's bias;
 * the codes of what is too large, and of NaN. */
struct small {
    uint32_t bits, fraction, bias, large, nan;
};

FN uint32_t encode_small(uint32_t bits, const struct small type)
{
    const uint32_t shift = 23 - type.fraction, up = (127 - type.bias) << 23;
    const uint32_t sign = (bits >> 31) << (type.bits - 1);
    const uint32_t a = bits & 0x7fffffff;
    uint32_t code;
    if (a > 0x7f800000)
        return type.nan;
    if (a < up + (1u << 23)) {
        /* where the type's steps are even, the sum with this one has them */
        const uint32_t grid = up + ((shift + 1) << 23);
        code = bits_of_f32(f32_of_bits(a) + f32_of_bits(grid)) - grid;
    } else {
        /* to nearest even: a carry out of the fraction is one of exponent */
        code =
            (a + ((a >> shift) & 1) + ((1u << (shift - 1)) - 1) - up) >> shift;
    }
    if (code >= type.large)
        return type.large == type.nan ? type.nan : sign | type.large;
    return sign | code;
}

#ifdef __CUDACC__
FN float in_f16(uint32_t code)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((uint16_t)code));
    return x;
}

FN uint32_t out_f16(float x)
{
    uint16_t code;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
    return x != x ? 0x7e00 : code;
}
#else
FN float in_f16(uint32_t code)
{
    const uint32_t a = (code & 0x7fff) << 13, up = 112u << 23;
    uint32_t value = a + up;
    if (a < 1u << 23) /* no leading one: give it one and take it away again */
        value = bits_of_f32(f32_of_bits(a + up + (1u << 23)) -
                            f32_of_bits(up + (1u << 23)));
    else if (a >= 0x7c00u << 13)
        value |= 0x7f800000;
    return f32_of_bits((code >> 15) << 31 | value);
}

FN uint32_t out_f16(float x)
{
    const struct small f16 = {16, 10, 15, 0x7c00, 0x7e00};
    return encode_small(bits_of_f32(x), f16);
}
#endif

FN uint32_t out_bf16(float x)
{
    uint32_t bits = bits_of_f32(x);
    return x != x ? NAN_F32 >> 16 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* F8E4M3 shifted by a bit is a number of F16 256 times too small. */
FN float in_f8e4m3(uint32_t code)
{
    if ((code & 0x7f) == 0x7f)
        return f32_of_bits(NAN_F32);
    return in_f16((code & 0x80) << 8 | (code & 0x7f) << 7) * 256.0f;
}

FN float in_f32(int dtype, uint64_t code)
{
    switch (dtype) {
    case DT_DTYPE_F16:
        return in_f16((uint32_t)code);
    case DT_DTYPE_BF16:
        return f32_of_bits((uint32_t)code << 16);
    case DT_DTYPE_F8E4M3:
        return in_f8e4m3((uint32_t)code);
    case DT_DTYPE_F8E5M2: /* is the upper half of F16 */
        return in_f16((uint32_t)code << 8);
    default:
        return f32_of_bits((uint32_t)code);
    }
}

/* Every NaN that comes out is the same: positive, quiet, no payload. */
FN uint64_t out_f32(int dtype, float x)
{
    const struct small f8e4m3 = {8, 3, 7, 0x7f, 0x7f};
    const struct small f8e5m2 = {8, 2, 15, 0x7c, 0x7e};
    switch (dtype) {
    case DT_DTYPE_F16:
        return out_f16(x);
    case DT_DTYPE_BF16:
        return out_bf16(x);
    case DT_DTYPE_F8E4M3:
        return encode_small(bits_of_f32(x), f8e4m3);
    case DT_DTYPE_F8E5M2:
        return encode_small(bits_of_f32(x), f8e5m2);
    default:
        return x != x ? NAN_F32 : bits_of_f32(x);
    }
}

/* ---- the other arithmetics ---- */

FN double in_f64(int dtype, uint64_t code)
{
    (void)dtype;
    return f64_of_bits(code);
}

FN uint64_t out_f64(int dtype, double x)
{
    (void)dtype;
    return x != x ? NAN_F64 : bits_of_f64(x);
}

FN int32_t in_i32(int dtype, uint64_t code)
{
    if (dtype == DT_DTYPE_I8)
        return (int8_t)code;
    return (int32_t)(uint32_t)code;
}

/* sums and products of I8 and U8 are right in their low bits */
FN uint64_t out_i32(int dtype, int32_t x)
{
    (void)dtype;
    return (uint32_t)x;
}

FN int64_t in_i64(int dtype, uint64_t code)
{
    (void)dtype;
    return (int64_t)code;
}

FN uint64_t out_i64(int dtype, int64_t x)
{
    (void)dtype;
    return (uint64_t)x;
}

/* ---- what is done to them ---- */

/* NaN where an operand is one; the leftmost of equal ones */
#define OPS(wide, type, wrapping)                                              \
    FN type op_##wide(int op, type a, type b)                                  \
    {                                                                          \
        switch (op) {                                                          \
        case DT_OP_PROD:                                                       \
            return (type)((wrapping)a * (wrapping)b);                          \
        case DT_OP_MIN:                                                        \
            return b < a || b != b ? b : a;                                    \
        case DT_OP_MAX:                                                        \
            return b > a || b != b ? b : a;                                    \
        default:                                                               \
            return (type)((wrapping)a + (wrapping)b);                          \
        }                                                                      \
    }
OPS(i32, int32_t, uint32_t)
OPS(i64, int64_t, uint64_t)
OPS(f32, float, float)
OPS(f64, double, double)

/* The factor of a sum. */
FN int32_t scale_i32(int32_t x, double factor)
{
    (void)factor;
    return x;
}

FN int64_t scale_i64(int64_t x, double factor)
{
    (void)factor;
    return x;
}

FN float scale_f32(float x, double factor)
{
    return x * (float)factor;
}

FN double scale_f64(double x, double factor)
{
    return x * factor;
}

/* A code times a factor, rounded again; integers are truncated. */
FN uint64_t scale_code(int dtype, uint64_t code, double factor)
{
    switch (dtype) {
    case DT_DTYPE_I32:
        return (uint32_t)(int32_t)((double)in_i32(dtype, code) * factor);
    case DT_DTYPE_I64:
        return (uint64_t)(int64_t)((double)in_i64(dtype, code) * factor);
    case DT_DTYPE_F64:
        return out_f64(dtype, scale_f64(in_f64(dtype, code), factor));
    default:
        return out_f32(dtype, scale_f32(in_f32(dtype, code), factor));
    }
}

/* Rounded to odd, as in lib/exec/convert.c: what follows rounds to nearest. */
FN float odd_f32(double x)
{
    const float near = (float)x;
    const double there = (double)near;
    uint32_t bits = bits_of_f32(near);
    if (x != x || there == x)
        return near;
    if ((there < 0 ? -there : there) > (x < 0 ? -x : x))
        bits--;
    return f32_of_bits(bits | 1);
}

/* A floating-point code as another type. */
FN uint64_t cast_code(int to, int from, uint64_t code)
{
    if (to == from)
        return code;
    if (from == DT_DTYPE_F64) {
        const double x = in_f64(from, code);
        return out_f32(to, to == DT_DTYPE_F32 ? (float)x : odd_f32(x));
    }
    if (to == DT_DTYPE_F64)
        return out_f64(to, (double)in_f32(from, code));
    return out_f32(to, in_f32(from, code));
}

/* A code divided, and rounded or truncated again. */
FN uint64_t divide(int dtype, uint64_t code, uint32_t by)
{
    switch (dtype) {
    case DT_DTYPE_I8:
    case DT_DTYPE_U8:
    case DT_DTYPE_I32:
        return out_i32(dtype, in_i32(dtype, code) / (int32_t)by);
    case DT_DTYPE_I64:
        return out_i64(dtype, in_i64(dtype, code) / (int64_t)by);
    case DT_DTYPE_F64:
        return out_f64(dtype, in_f64(dtype, code) / (double)by);
    default:
        return out_f32(dtype, in_f32(dtype, code) / (float)by);
    }
}

#endif
