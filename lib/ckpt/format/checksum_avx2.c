/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* checksum_avx2.c - XXH3-64 in vectors of 32 bytes, as fast as memory. All of
 * the file is compiled for AVX2, since the hash is inlined from its header. */
#include "ckpt/format/checksum.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))),                  \
                             apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#include <immintrin.h>

#define XXH_INLINE_ALL
#define XXH_VECTOR 2 /* XXH_AVX2 */
#include <xxhash.h>

uint64_t dt_checksum_avx2(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}

void dt_checksum_add_avx2(struct dt_checksum_parts *parts, const void *data,
                          size_t len)
{
    XXH3_64bits_update((XXH3_state_t *)parts->state, data, len);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
