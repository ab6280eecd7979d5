/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_random.h - random numbers without a state: the i-th number of a
 * stream is a function of (seed, stream, i), so nothing needs to be saved in
 * a checkpoint and every rank can compute every number.
 *
 * The mixing function is SplitMix64's (Steele, Lea, Flood, OOPSLA 2014). */
#ifndef FASHION_RANDOM_H
#define FASHION_RANDOM_H

#include <stdint.h>

static inline uint64_t random_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t i)
{
    return random_mix(random_mix(random_mix(seed) ^ stream) ^ i);
}

/* Uniform in [0, n), 0 < n < 2^32; the bias is below n / 2^32. */
static inline uint32_t random_below(uint64_t seed, uint64_t stream, uint64_t i,
                                    uint32_t n)
{
    return (uint32_t)(((random_u64(seed, stream, i) >> 32) * n) >> 32);
}

/* Uniform in [-1, 1). */
static inline float random_unit(uint64_t seed, uint64_t stream, uint64_t i)
{
    int64_t bits24 = (int64_t)(random_u64(seed, stream, i) >> 40);
    return (float)(bits24 - (1 << 23)) / (float)(1 << 23);
}

#endif
