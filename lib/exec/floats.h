/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* floats.h - the floating-point types of 8 and 16 bits as lanes of F32.
 *
 * decode_TYPE and encode_TYPE convert a code in the low bits of each 32-bit
 * lane. load_TYPE converts one register of elements to two or four registers of
 * lanes; their order is the cheapest one for the type (even and odd elements,
 * for instance), as a reduction does not depend on it, and pack_TYPE restores
 * the order in memory. in_TYPE and out_TYPE keep the order. */

/* Selection per lane. A file of kernels that has instructions for it defines
 * these itself and sets HAVE_CHOOSE or HAVE_IF. */
#ifndef HAVE_CHOOSE
/* x where all bits of an element of mask are set, y where none is */
INLINE u32v choose(u32v mask, u32v x, u32v y)
{
    return (x & mask) | (y & ~mask);
}
#endif

#ifndef HAVE_IF
INLINE u32v if_nan(u32v value, u32v x, u32v y)
{
    return choose((u32v)((f32v)value != (f32v)value), x, y);
}

/* x where a < b, else y; a and b are below 2^31, so a signed comparison does */
INLINE u32v if_less(u32v a, u32v b, u32v x, u32v y)
{
    return choose((u32v)((i32v)a < (i32v)b), x, y);
}
#endif

/* Replace each NaN by the canonical one (positive, quiet, no payload): the
 * results of all kernels must be equal bit for bit, and processors differ in
 * the NaN that an operation yields. */
INLINE u32v one_nan_f32(u32v bits)
{
    return if_nan(bits, all32(0x7fc00000), bits);
}

INLINE u32v one_nan_f64(u32v bits)
{
    f64v x = (f64v)bits;
    return choose((u32v)(x != x), (u32v)all64(0x7ff8000000000000), bits);
}

/* A type of `bits` bits: the bits of its fraction, the bias of its exponent,
 * and the codes of overflow and of NaN. They are equal in a type without
 * infinity. */
struct small {
    uint32_t bits, fraction, bias, large, nan;
};

#define F16    ((struct small){16, 10, 15, 0x7c00, 0x7e00})
#define F8E4M3 ((struct small){8, 3, 7, 0x7f, 0x7f})
#define F8E5M2 ((struct small){8, 2, 15, 0x7c, 0x7e})

INLINE u32v decode_small(u32v code, const struct small type)
{
    const uint32_t shift = 23 - type.fraction, up = (127 - type.bias) << 23;
    u32v sign = (code >> (type.bits - 1)) << 31;
    u32v a = (code & ((1u << (type.bits - 1)) - 1)) << shift;
    /* A subnormal number has no leading one. Its fraction is read as that of
     * the smallest normal exponent, then the leading one is subtracted, which
     * is exact. */
    u32v below =
        (u32v)((f32v)(a + (up + (1u << 23))) - (f32v)all32(up + (1u << 23)));
    u32v value = if_less(a, all32(1u << 23), below, a + up);
    /* the payload of a NaN does not matter: pack makes it canonical */
    if (type.large == type.nan)
        value = if_less(a, all32(type.nan << shift), value, all32(0x7fc00000));
    else
        value |=
            if_less(a, all32(type.large << shift), all32(0), all32(0x7f800000));
    return sign | value;
}

INLINE u32v encode_small(u32v bits, const struct small type)
{
    const uint32_t shift = 23 - type.fraction, up = (127 - type.bias) << 23;
    u32v a = bits & 0x7fffffff;
    /* round to nearest even; a carry out of the fraction increments the
     * exponent, as it should */
    u32v odd = (a >> shift) & 1;
    u32v normal = (a + odd + ((1u << (shift - 1)) - 1) - up) >> shift;
    /* Subnormal numbers are equally spaced, by the unit in the last place of
     * this power of two: the addition rounds to nearest even, and the low bits
     * of the sum are the code. */
    const uint32_t grid = up + ((shift + 1) << 23);
    u32v below = (u32v)((f32v)a + (f32v)all32(grid)) - grid;
    u32v code = if_less(a, all32(up + (1u << 23)), below, normal);
    code = if_less(all32(type.large), code, all32(type.large), code);
    code |= (bits >> 31) << (type.bits - 1);
    if (type.large != type.nan)
        return if_nan(bits, all32(type.nan), code);
    const uint32_t magnitude = (1u << (type.bits - 1)) - 1;
    return if_less(code & magnitude, all32(type.nan), code, all32(type.nan));
}

/* The code is in the upper 16 bits; the lower ones are undefined. */
INLINE u32v encode_bf16_high(u32v bits)
{
    u32v rounded = bits + 0x7fff + (bits >> 16 & 1);
    return if_nan(bits, all32(0x7fc00000), rounded);
}

INLINE u32v encode_bf16(u32v bits)
{
    return encode_bf16_high(bits) >> 16;
}

INLINE void load_bf16(u32v *lanes, const char *p)
{
    u32v bits = peek(p);
    lanes[0] = bits << 16;
    lanes[1] = bits & 0xffff0000;
}

INLINE u32v pack_bf16(const u32v *lanes)
{
    return encode_bf16(lanes[0]) | (encode_bf16_high(lanes[1]) & 0xffff0000);
}

/* in_TYPE, out_TYPE: LANES32 elements in the order of memory */
INLINE u32v in_16(const char *p)
{
    return (u32v) __builtin_convertvector(*(const any_half_u16v *)p, u32v);
}

INLINE void out_16(char *p, u32v codes)
{
    *(any_half_u16v *)p = __builtin_convertvector(codes, half_u16v);
}

INLINE u32v in_8(const char *p)
{
    return (u32v) __builtin_convertvector(*(const any_quarter_u8v *)p, u32v);
}

INLINE void out_8(char *p, u32v codes)
{
    *(any_quarter_u8v *)p = __builtin_convertvector(codes, quarter_u8v);
}

INLINE u32v in_bf16(const char *p)
{
    return in_16(p) << 16;
}

INLINE void out_bf16(char *p, u32v bits)
{
    out_16(p, encode_bf16(bits));
}

/* A processor that converts F16 has its own in_f16 and out_f16, and split_f16
 * and join_f16 for two registers. */
#ifdef HAVE_F16
INLINE void load_f16(u32v *lanes, const char *p)
{
    lanes[0] = in_f16(p);
    lanes[1] = in_f16(p + WIDTH / 2);
}

INLINE u32v pack_f16(const u32v *lanes)
{
    return join_f16(one_nan_f32(lanes[0]), one_nan_f32(lanes[1]));
}
#else
INLINE u32v in_f16(const char *p)
{
    return decode_small(in_16(p), F16);
}

INLINE void out_f16(char *p, u32v bits)
{
    out_16(p, encode_small(bits, F16));
}

INLINE void load_f16(u32v *lanes, const char *p)
{
    u32v bits = peek(p);
    lanes[0] = decode_small(bits & 0xffff, F16);
    lanes[1] = decode_small(bits >> 16, F16);
}

INLINE u32v pack_f16(const u32v *lanes)
{
    return encode_small(lanes[0], F16) | encode_small(lanes[1], F16) << 16;
}
#endif
