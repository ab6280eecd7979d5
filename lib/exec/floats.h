/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* floats.h - the floating-point types of 8 and 16 bits as lanes of F32.
 *
 * decode and encode work on the low bits of 32-bit lanes. load takes a register
 * from memory apart into one or more of lanes, in an order of its own, which
 * pack undoes. */

/* Per lane; a processor that has better ones sets HAVE_CHOOSE, HAVE_IF. */
#ifndef HAVE_CHOOSE
/* where mask has all bits of an element, x, where it has none, y */
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

/* a < b, both less than 1 << 31 */
INLINE u32v if_less(u32v a, u32v b, u32v x, u32v y)
{
    return choose((u32v)((i32v)a < (i32v)b), x, y);
}
#endif

/* A register of results with each NaN made the one that comes out of every
 * kernel: positive, quiet, no payload. */
INLINE u32v one_nan_f32(u32v bits)
{
    return if_nan(bits, all32(0x7fc00000), bits);
}

INLINE u32v one_nan_f64(u32v bits)
{
    f64v x = (f64v)bits;
    return choose((u32v)(x != x), (u32v)all64(0x7ff8000000000000), bits);
}

/* A type of `bits` bits with `fraction` bits of fraction; the exponent's bias;
 * the codes of what is too large, and of NaN. */
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
    /* without a leading one: give it one and take it away again */
    u32v below =
        (u32v)((f32v)(a + (up + (1u << 23))) - (f32v)all32(up + (1u << 23)));
    u32v value = if_less(a, all32(1u << 23), below, a + up);
    /* a NaN may have any payload here: every pack sees to that */
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
    /* to nearest even: a carry out of the fraction is a step of exponent */
    u32v odd = (a >> shift) & 1;
    u32v normal = (a + odd + ((1u << (shift - 1)) - 1) - up) >> shift;
    /* where the type's steps are even, the sum with this one has them too */
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

/* the result in the upper half, rubbish in the lower */
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

/* in_TYPE, out_TYPE: LANES32 elements in their order */
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

/* a processor that knows F16 has its own in_f16 and out_f16 */
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
