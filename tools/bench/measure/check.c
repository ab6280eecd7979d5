/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* check.c - inputs whose reduction is known exactly. */
#include "measure/check.h"

#include <math.h>
#include <string.h>

#include "measure/element.h"

/* values of MIN and MAX, and the largest of a SUM; factors of 2 in a PROD */
enum { LARGEST = 100, TWOS = 3 };

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a + 1) * UINT64_C(0xd6e8feb86659fd93) ^
                 (b + 1) * UINT64_C(0xa0761d6478bd642f);
    x = (x ^ x >> 32) * UINT64_C(0xe7037ed1a0b428db);
    x = (x ^ x >> 29) * UINT64_C(0x8ebc6af09c88c6e3);
    return x ^ x >> 32;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the inputs of one element, whose hash is h ----
 *
 * A type has a limited number of exact integers, so only so many ranks
 * contribute to the sum of an element: a window of the ranks, which begins at a
 * different rank for each element. The sum of their absolute values is exact,
 * so every partial sum is. */

static int64_t place_in_window(uint64_t h, int rank, int ranks)
{
    return (rank + (int64_t)(h % (uint64_t)ranks)) % ranks;
}

static double sum_input(const struct check_kind *kind, uint64_t h, int rank)
{
    int64_t exact = dtype_exact(kind->dtype);
    int64_t window = least(kind->ranks, exact);
    int64_t largest = least(LARGEST, exact / window);
    if (place_in_window(h, rank, kind->ranks) >= window)
        return 0;
    uint64_t mine = mix(h, (uint64_t)rank);
    double value = 1 + (double)(mine % (uint64_t)largest);
    return dtype_is_signed(kind->dtype) && mine >> 40 & 1 ? -value : value;
}

/* An average q that is exact: ranks contribute q + d and q - d in turn; the
 * last rank of an odd number contributes q. */
static double avg_input(const struct check_kind *kind, uint64_t h, int rank)
{
    int64_t exact = dtype_exact(kind->dtype), ranks = kind->ranks;
    int64_t window = least(ranks, exact - exact % 2);
    int64_t largest = least(LARGEST, exact / ranks);
    int64_t q = 0, d = 1, at = place_in_window(h, rank, kind->ranks);
    if (largest >= 1) {
        uint64_t bits = h >> 8;
        q = (int64_t)(bits % (uint64_t)(2 * largest + 1)) - largest;
        d = largest - (q < 0 ? -q : q);
    }
    if (at >= window)
        return 0;
    if (window % 2 && at == window - 1)
        return (double)q;
    return (double)(at % 2 ? q - d : q + d);
}

static double prod_input(const struct check_kind *kind, uint64_t h, int rank)
{
    double value = place_in_window(h, rank, kind->ranks) < TWOS ? 2 : 1;
    bool negative = mix(h, (uint64_t)rank) >> 40 & 1;
    return dtype_is_signed(kind->dtype) && negative ? -value : value;
}

static double extreme_input(const struct check_kind *kind, uint64_t h, int rank)
{
    int64_t largest = least(LARGEST, dtype_exact(kind->dtype));
    uint64_t mine = mix(h, (uint64_t)rank);
    double value = (double)(mine % (uint64_t)(largest + 1));
    return value && dtype_is_signed(kind->dtype) && mine >> 40 & 1 ? -value
                                                                   : value;
}

static double input(const struct check_kind *kind, size_t i, int rank)
{
    uint64_t h = mix(kind->seed, i);
    switch (kind->op) {
    case DT_OP_PROD:
        return prod_input(kind, h, rank);
    case DT_OP_MIN:
    case DT_OP_MAX:
        return extreme_input(kind, h, rank);
    case DT_OP_AVG:
        if (dtype_is_float(kind->dtype))
            return avg_input(kind, h, rank);
        break;
    case DT_OP_SUM:
        break;
    }
    return sum_input(kind, h, rank);
}

/* ---- tables ---- */

void check_input(void *table, size_t period, const struct check_kind *kind,
                 int rank)
{
    size_t size = dt_dtype_size(kind->dtype);
    for (size_t i = 0; i < period; i++)
        number_store((char *)table + i * size, kind->dtype,
                     input(kind, i, rank));
}

static double combine(dt_op_t op, double a, double b)
{
    switch (op) {
    case DT_OP_MIN:
        return a < b ? a : b;
    case DT_OP_MAX:
        return a > b ? a : b;
    case DT_OP_PROD:
        return a * b;
    default:
        return a + b;
    }
}

void check_result(void *table, size_t period, const struct check_kind *kind)
{
    size_t size = dt_dtype_size(kind->dtype);
    for (size_t i = 0; i < period; i++) {
        double value = input(kind, i, 0);
        for (int rank = 1; rank < kind->ranks; rank++)
            value = combine(kind->op, value, input(kind, i, rank));
        if (kind->op == DT_OP_AVG)
            value /= kind->ranks;
        if (!dtype_is_float(kind->dtype))
            value = trunc(value);
        number_store((char *)table + i * size, kind->dtype, value + 0.0);
    }
}

void check_raw(void *table, size_t period, dt_dtype_t dtype, uint64_t seed,
               uint64_t source)
{
    size_t size = dt_dtype_size(dtype);
    uint64_t h = mix(seed, source);
    for (size_t i = 0; i < period; i++) {
        uint64_t bits = mix(h, i);
        memcpy((char *)table + i * size, &bits, size);
    }
}

/* ---- buffers ---- */

void check_tile(void *buf, size_t count, const void *table, size_t period,
                size_t size, size_t first)
{
    for (size_t done = 0; done < count;) {
        size_t from = (first + done) % period, n = period - from;
        if (n > count - done)
            n = count - done;
        memcpy((char *)buf + done * size, (const char *)table + from * size,
               n * size);
        done += n;
    }
}

static bool same(const void *got, const void *wanted, size_t size,
                 const struct check_kind *kind)
{
    if (!memcmp(got, wanted, size))
        return true;
    if (!kind || !dtype_is_float(kind->dtype))
        return false;
    double is = number_load(got, kind->dtype);
    double should = number_load(wanted, kind->dtype);
    if (kind->op != DT_OP_AVG || size < 4)
        return is == should;
    double last = fabs(should) / (double)(dtype_exact(kind->dtype) / 2);
    return fabs(is - should) <= last;
}

size_t check_compare(const void *buf, size_t count, const void *table,
                     size_t period, size_t size, size_t first,
                     const struct check_kind *kind)
{
    size_t wrong = 0;
    for (size_t done = 0; done < count;) {
        size_t from = (first + done) % period, n = period - from;
        const char *got = (const char *)buf + done * size;
        const char *wanted = (const char *)table + from * size;
        if (n > count - done)
            n = count - done;
        if (memcmp(got, wanted, n * size))
            for (size_t i = 0; i < n; i++)
                wrong += !same(got + i * size, wanted + i * size, size, kind);
        done += n;
    }
    return wrong;
}
