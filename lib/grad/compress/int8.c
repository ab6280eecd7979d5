/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* int8.c - blocks of a gradient in 8 bits per element.
 *
 * The element of the largest magnitude becomes 127 or -127. All loops are over
 * whole blocks, whose end is zeros where the gradient has no more elements. */
#include "grad/compress/int8.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "grad/convert.h"

#define BLOCK DT_INT8_BLOCK
#define MOST  127.0F
#define SIGN  ((uint32_t)1 << 31)

/* Added and taken away, it rounds a small number to nearest even. */
#define ROUNDER 12582912.0F /* 1.5 * 2^23 */

size_t dt_int8_blocks(size_t count)
{
    return count / BLOCK + (count % BLOCK != 0);
}

/* NaN where an element is not finite, or would not be again; 0 where all are
 * too small to divide by a scale of them. */
static float scale_of(const float v[BLOCK])
{
    /* magnitudes have the order of their bits, NaN above infinity */
    uint32_t bits[BLOCK], most = 0;
    float scale;
    memcpy(bits, v, sizeof(bits));
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t magnitude = bits[i] & ~SIGN;
        most = magnitude > most ? magnitude : most;
    }
    memcpy(&scale, &most, sizeof(scale));
    scale /= MOST;
    if (!isfinite(scale * MOST))
        return NAN;
    return scale < FLT_MIN ? 0 : scale;
}

static void quantize(unsigned char *record, const float v[BLOCK])
{
    int8_t elements[BLOCK] = {0};
    float scale = scale_of(v);
    memcpy(record, &scale, sizeof(scale));
    if (scale > 0)
        for (size_t i = 0; i < BLOCK; i++) {
            float up = v[i] / scale + ROUNDER;
            elements[i] = (int8_t)(up - ROUNDER);
        }
    memcpy(record + sizeof(scale), elements, sizeof(elements));
}

void dt_int8_decode(float out[BLOCK], const unsigned char *record)
{
    float scale;
    int8_t elements[BLOCK];
    memcpy(&scale, record, sizeof(scale));
    memcpy(elements, record + sizeof(scale), sizeof(elements));
    for (size_t i = 0; i < BLOCK; i++)
        out[i] = scale * (float)elements[i];
}

bool dt_int8_is_nan(const unsigned char *record)
{
    float scale;
    memcpy(&scale, record, sizeof(scale));
    return isnan(scale);
}

/* error = v - record */
static void error_of(float error[BLOCK], const float v[BLOCK],
                     const unsigned char *record)
{
    float sent[BLOCK];
    if (dt_int8_is_nan(record)) {
        memset(error, 0, BLOCK * sizeof(*error));
        return;
    }
    dt_int8_decode(sent, record);
    for (size_t i = 0; i < BLOCK; i++)
        error[i] = v[i] - sent[i];
}

/* What the block would send without loss. */
static void exact(float v[BLOCK], const struct dt_int8_block *block)
{
    dt_convert_in(v, DT_DTYPE_F32, block->src, block->dtype, block->n,
                  block->factor);
    for (size_t i = 0; i < block->n; i++)
        v[i] += block->residual[i];
    memset(v + block->n, 0, (BLOCK - block->n) * sizeof(*v));
}

void dt_int8_encode(unsigned char *record, const struct dt_int8_block *block)
{
    float v[BLOCK];
    exact(v, block);
    quantize(record, v);
}

void dt_int8_keep(const struct dt_int8_block *block,
                  const unsigned char *record)
{
    float v[BLOCK], error[BLOCK];
    exact(v, block);
    error_of(error, v, record);
    memcpy(block->residual, error, block->n * sizeof(*error));
}

void dt_int8_reduce(unsigned char *sum, float error[BLOCK],
                    const unsigned char *records, size_t stride, int n)
{
    float v[BLOCK] = {0}, part[BLOCK];
    for (int r = 0; r < n; r++) {
        dt_int8_decode(part, records + (size_t)r * stride);
        for (size_t i = 0; i < BLOCK; i++)
            v[i] += part[i];
    }
    quantize(sum, v);
    error_of(error, v, sum);
}
