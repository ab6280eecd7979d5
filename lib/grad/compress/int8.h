/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* int8.h - a gradient in 8 bits per element: blocks of 128 elements of one
 * gradient, each with a scale, as records:
 *
 *   record   f32 scale | i8 elements[128]     element i is scale * elements[i]
 *
 * What rounding takes away is the error. It is added to what the same rank
 * gives in the next step (error feedback), so nothing is lost in the mean over
 * many steps. A block with an infinite element or NaN becomes NaN as a whole,
 * and has no error. Nothing here keeps state, allocates or fails. */
#ifndef DT_GRAD_COMPRESS_INT8_H
#define DT_GRAD_COMPRESS_INT8_H

#include <stdbool.h>

#include "dt.h"

#define DT_INT8_BLOCK  ((size_t)128) /* elements */
#define DT_INT8_RECORD (sizeof(float) + DT_INT8_BLOCK)

/* Blocks of a gradient of so many elements. */
size_t dt_int8_blocks(size_t count);

/* A block of a rank's gradient: n elements at src, n <= DT_INT8_BLOCK. What is
 * sent is factor * src + residual. */
struct dt_int8_block {
    const void *src;
    dt_dtype_t dtype; /* F32 or F64 */
    size_t n;
    double factor;
    float *residual;
};

/* Write its record. */
void dt_int8_encode(unsigned char *record, const struct dt_int8_block *block);

/* This record was used: residual = factor * src + residual - record. */
void dt_int8_keep(const struct dt_int8_block *block,
                  const unsigned char *record);

/* sum = the record of the sum of n records, which are `stride` bytes apart and
 * are added in this order; error = the sum - its record. */
void dt_int8_reduce(unsigned char *sum, float error[DT_INT8_BLOCK],
                    const unsigned char *records, size_t stride, int n);

/* Was there an element that is not finite? */
bool dt_int8_is_nan(const unsigned char *record);

/* The elements of a record. */
void dt_int8_decode(float out[DT_INT8_BLOCK], const unsigned char *record);

#endif
