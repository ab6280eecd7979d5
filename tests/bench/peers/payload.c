/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* payload.c - numbers that repeat after eight elements, so that writing and
 * checking them goes by blocks, at the speed of memory */
#include "payload.h"

#include <stdint.h>
#include <string.h>

enum { PERIOD = 8, BLOCK = 4096 };

size_t element_size(enum element type)
{
    return type == ELEMENT_F32 ? 4 : 2;
}

static unsigned value(int rank, unsigned turn, unsigned i)
{
    return (i + 3 * (unsigned)rank + turn) % PERIOD;
}

/* n below 2048, which 11 bits of mantissa hold */
static uint16_t half_of(unsigned n)
{
    if (n == 0)
        return 0;
    unsigned exponent = 31 - (unsigned)__builtin_clz(n);
    return (uint16_t)((exponent + 15) << 10 | ((n << 10 >> exponent) & 0x3ff));
}

static void encode(unsigned char *to, enum element type, unsigned n)
{
    float f = (float)n;
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &f, 4);
    half = type == ELEMENT_F16 ? half_of(n) : (uint16_t)(bits >> 16);
    if (type == ELEMENT_F32)
        memcpy(to, &bits, 4);
    else
        memcpy(to, &half, 2);
}

/* the sum over the ranks from first to last - 1; as much as count needs */
static void make_block(unsigned char *block, size_t count, enum element type,
                       int first, int last, unsigned turn)
{
    size_t width = element_size(type);
    for (unsigned i = 0; i < count && i < BLOCK / width; i++) {
        unsigned sum = 0;
        for (int r = first; r < last; r++)
            sum += value(r, turn, i);
        encode(block + i * width, type, sum);
    }
}

void payload_fill(void *buf, size_t count, enum element type, int rank,
                  unsigned turn)
{
    unsigned char block[BLOCK], *to = buf;
    size_t left = count * element_size(type);
    make_block(block, count, type, rank, rank + 1, turn);
    for (; left > BLOCK; left -= BLOCK, to += BLOCK)
        memcpy(to, block, BLOCK);
    memcpy(to, block, left);
}

static size_t wrong_in(const unsigned char *got, const unsigned char *wanted,
                       size_t bytes, size_t width)
{
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i += width)
        wrong += memcmp(got + i, wanted + i, width) != 0;
    return wrong;
}

size_t payload_wrong(const void *buf, size_t count, enum element type, int size,
                     unsigned turn)
{
    unsigned char block[BLOCK];
    const unsigned char *at = buf;
    size_t left = count * element_size(type), wrong = 0;
    make_block(block, count, type, 0, size, turn);
    while (left > 0) {
        size_t n = left < BLOCK ? left : BLOCK;
        if (memcmp(at, block, n) != 0)
            wrong += wrong_in(at, block, n, element_size(type));
        at += n;
        left -= n;
    }
    return wrong;
}
