/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* avx2.c - kernels for x86-64 with AVX2 and F16C. */
#if defined(__x86_64__)
#include <immintrin.h>

#define WIDTH   32
#define BLOCK   4
#define TARGET  __attribute__((target("avx2,f16c")))
#define KERNELS dt_exec_avx2
#define NAME    "avx2"

#include "exec/vector.h"

#define ROUND (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

#define HAVE_CHOOSE
INLINE u32v choose(u32v mask, u32v x, u32v y)
{
    return (u32v)_mm256_blendv_epi8((__m256i)y, (__m256i)x, (__m256i)mask);
}

#define HAVE_STREAM
INLINE void stream(char *p, u32v bits)
{
    _mm256_stream_si256((__m256i *)(void *)p, (__m256i)bits);
}

INLINE void end_stream(void)
{
    _mm_sfence();
}

#define HAVE_F16
INLINE u32v in_f16(const char *p)
{
    return (u32v)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

INLINE void out_f16(char *p, u32v bits)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph((__m256)bits, ROUND));
}

INLINE void split_f16(u32v *lanes, u32v codes)
{
    __m256i x = (__m256i)codes;
    lanes[0] = (u32v)_mm256_cvtph_ps(_mm256_castsi256_si128(x));
    lanes[1] = (u32v)_mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
}

INLINE u32v join_f16(u32v a, u32v b)
{
    return (u32v)_mm256_set_m128i(_mm256_cvtps_ph((__m256)b, ROUND),
                                  _mm256_cvtps_ph((__m256)a, ROUND));
}

#include "exec/floats.h"
#include "exec/f8.h"
#include "exec/loops.h"
#endif
