/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* avx512.c - kernels for x86-64 with AVX-512. */
#if defined(__x86_64__)
#include <immintrin.h>

#define WIDTH 64
#define BLOCK 4
#define TARGET                                                                 \
    __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#define KERNELS dt_exec_avx512
#define NAME    "avx512"

#include "exec/vector.h"

#define ROUND (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

#define HAVE_IF
INLINE u32v if_nan(u32v value, u32v x, u32v y)
{
    __mmask16 nan =
        _mm512_cmp_ps_mask((__m512)value, (__m512)value, _CMP_UNORD_Q);
    return (u32v)_mm512_mask_mov_epi32((__m512i)y, nan, (__m512i)x);
}

INLINE u32v if_less(u32v a, u32v b, u32v x, u32v y)
{
    __mmask16 less = _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b);
    return (u32v)_mm512_mask_mov_epi32((__m512i)y, less, (__m512i)x);
}

#define HAVE_PART
INLINE u32v peek_part(const char *p, size_t bytes)
{
    __mmask64 mask = ((__mmask64)1 << bytes) - 1;
    return (u32v)_mm512_maskz_loadu_epi8(mask, p);
}

INLINE void poke_part(char *p, u32v bits, size_t bytes)
{
    __mmask64 mask = ((__mmask64)1 << bytes) - 1;
    _mm512_mask_storeu_epi8(p, mask, (__m512i)bits);
}

#define HAVE_STREAM
INLINE void stream(char *p, u32v bits)
{
    _mm512_stream_si512((__m512i *)(void *)p, (__m512i)bits);
}

INLINE void end_stream(void)
{
    _mm_sfence();
}

#define HAVE_F16
INLINE u32v in_f16(const char *p)
{
    return (u32v)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

INLINE void out_f16(char *p, u32v bits)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph((__m512)bits, ROUND));
}

INLINE void split_f16(u32v *lanes, u32v codes)
{
    __m512i x = (__m512i)codes;
    lanes[0] = (u32v)_mm512_cvtph_ps(_mm512_castsi512_si256(x));
    lanes[1] = (u32v)_mm512_cvtph_ps(_mm512_extracti64x4_epi64(x, 1));
}

INLINE u32v join_f16(u32v a, u32v b)
{
    __m512i low = _mm512_castsi256_si512(_mm512_cvtps_ph((__m512)a, ROUND));
    return (u32v)_mm512_inserti64x4(low, _mm512_cvtps_ph((__m512)b, ROUND), 1);
}

#include "exec/floats.h"
#include "exec/f8.h"
#include "exec/loops.h"
#endif
