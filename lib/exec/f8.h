/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* f8.h - the types of 8 bits as lanes of F32.
 *
 * A processor that converts F16 (HAVE_F16) goes by way of it. An F8E5M2 code is
 * the upper byte of the F16 number of the same value. An F8E4M3 code in the
 * upper byte, its exponent and fraction shifted right by one bit, is an F16
 * number: the biases are 7 and 15, so its value is 1/256 of the right one. */

INLINE u32v in_f8e4m3(const char *p)
{
    return decode_small(in_8(p), F8E4M3);
}

INLINE void out_f8e4m3(char *p, u32v bits)
{
    out_8(p, encode_small(bits, F8E4M3));
}

INLINE u32v in_f8e5m2(const char *p)
{
    return decode_small(in_8(p), F8E5M2);
}

INLINE void out_f8e5m2(char *p, u32v bits)
{
    out_8(p, encode_small(bits, F8E5M2));
}

#ifdef HAVE_F16
typedef uint16_t u16v __attribute__((vector_size(WIDTH)));

/* Round F32 to a significand of `fraction` bits after the leading one, where
 * `least` is the exponent of the smallest normal number. The conversion to F16
 * is then exact, and nothing is rounded twice. Correct below 2^17; numbers from
 * there on stay above it, which overflows in either type. */
INLINE u32v round_digits(u32v bits, uint32_t fraction, int least)
{
    u32v low = all32((uint32_t)(127 + least) << 23), high = all32(143u << 23);
    u32v power = bits & 0x7f800000;
    power = if_less(power, low, low, power);
    power = if_less(high, power, high, power);
    /* The unit in the last place of grid is that of the rounded result, so the
     * addition rounds to nearest even and the subtraction is exact. It is 1.5
     * times a power of two, so that a negative number does not leave its
     * binade. The sign is set at the end for results of -0. */
    f32v grid = (f32v)(power + ((23 - fraction) << 23) + 0x400000);
    return (u32v)(((f32v)bits + grid) - grid) | (bits & 0x80000000);
}

INLINE void load_f8e5m2(u32v *lanes, const char *p)
{
    u32v bits = peek(p);
    split_f16(lanes, bits << 8 & 0xff00ff00);
    split_f16(lanes + 2, bits & 0xff00ff00);
}

INLINE u32v pack_f8e5m2(const u32v *lanes)
{
    u32v even = join_f16(round_digits(lanes[0], 2, -14),
                         round_digits(lanes[1], 2, -14));
    u32v odd = join_f16(round_digits(lanes[2], 2, -14),
                        round_digits(lanes[3], 2, -14));
    u8v codes = (u8v)((even >> 8 & 0x00ff00ff) | (odd & 0xff00ff00));
    u8v nan = (u8v)((codes & 0x7f) > 0x7c);
    return choose((u32v)nan, all32(0x7e7e7e7e), (u32v)codes);
}

/* Each 16 bits hold an F8E4M3 code in their upper byte. A NaN has to get the
 * exponent of an F16 NaN, as F8E4M3 has no infinity. */
INLINE void split_f8e4m3(u32v *lanes, u32v codes)
{
    u16v small = (u16v)((codes & 0x80008000) | (codes >> 1 & 0x3f803f80));
    u16v nan = (u16v)((small & 0x7f80) == 0x3f80);
    split_f16(lanes, (u32v)(small | (nan & 0x7c00)));
    lanes[0] = (u32v)((f32v)lanes[0] * 256.0f);
    lanes[1] = (u32v)((f32v)lanes[1] * 256.0f);
}

INLINE u32v join_f8e4m3(const u32v *lanes)
{
    f32v a = (f32v)round_digits(lanes[0], 3, -6) * (1 / 256.0f);
    f32v b = (f32v)round_digits(lanes[1], 3, -6) * (1 / 256.0f);
    u32v small = join_f16((u32v)a, (u32v)b);
    /* 0x3f00 is 1.75 = 448 / 256, the largest number; beyond it is NaN */
    u32v nan = (u32v)(((u16v)small & 0x7fff) > 0x3f00);
    u32v codes = (small & 0x80008000) | (small << 1 & 0x7f007f00);
    return choose(nan, all32(0x7f007f00), codes);
}

INLINE void load_f8e4m3(u32v *lanes, const char *p)
{
    u32v bits = peek(p);
    split_f8e4m3(lanes, bits << 8);
    split_f8e4m3(lanes + 2, bits);
}

INLINE u32v pack_f8e4m3(const u32v *lanes)
{
    return join_f8e4m3(lanes) >> 8 | join_f8e4m3(lanes + 2);
}
#else
INLINE void load_small4(u32v *lanes, const char *p, const struct small type)
{
    u32v bits = peek(p);
    lanes[0] = decode_small(bits & 0xff, type);
    lanes[1] = decode_small(bits >> 8 & 0xff, type);
    lanes[2] = decode_small(bits >> 16 & 0xff, type);
    lanes[3] = decode_small(bits >> 24, type);
}

INLINE u32v pack_small4(const u32v *lanes, const struct small type)
{
    return encode_small(lanes[0], type) | encode_small(lanes[1], type) << 8 |
           encode_small(lanes[2], type) << 16 |
           encode_small(lanes[3], type) << 24;
}

INLINE void load_f8e4m3(u32v *lanes, const char *p)
{
    load_small4(lanes, p, F8E4M3);
}

INLINE u32v pack_f8e4m3(const u32v *lanes)
{
    return pack_small4(lanes, F8E4M3);
}

INLINE void load_f8e5m2(u32v *lanes, const char *p)
{
    load_small4(lanes, p, F8E5M2);
}

INLINE u32v pack_f8e5m2(const u32v *lanes)
{
    return pack_small4(lanes, F8E5M2);
}
#endif
