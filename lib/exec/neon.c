/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* neon.c - kernels for AArch64, which converts F16 in hardware. */
#if defined(__aarch64__)
#include <arm_neon.h>

#define WIDTH   16
#define BLOCK   4
#define TARGET  /* NEON is a part of every AArch64 processor */
#define KERNELS dt_exec_neon
#define NAME    "neon"

#include "exec/vector.h"

#define HAVE_F16
INLINE u32v in_f16(const char *p)
{
    uint16x4_t codes = vreinterpret_u16_u8(vld1_u8((const uint8_t *)p));
    return (u32v)vcvt_f32_f16(vreinterpret_f16_u16(codes));
}

INLINE void out_f16(char *p, u32v bits)
{
    float16x4_t codes = vcvt_f16_f32((float32x4_t)bits);
    vst1_u8((uint8_t *)p, vreinterpret_u8_f16(codes));
}

INLINE void split_f16(u32v *lanes, u32v codes)
{
    float16x8_t x = (float16x8_t)codes;
    lanes[0] = (u32v)vcvt_f32_f16(vget_low_f16(x));
    lanes[1] = (u32v)vcvt_high_f32_f16(x);
}

INLINE u32v join_f16(u32v a, u32v b)
{
    float16x4_t low = vcvt_f16_f32((float32x4_t)a);
    return (u32v)vcvt_high_f16_f32(low, (float32x4_t)b);
}

#include "exec/floats.h"
#include "exec/f8.h"
#include "exec/loops.h"
#endif
