/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* check.h - inputs whose reduction is known exactly, for every type, operation
 * and number of ranks. Every partial sum of them is exact in any order, so a
 * contribution that is lost, doubled or misplaced changes the result.
 *
 * A buffer repeats a table of at most CHECK_PERIOD elements. Tables have room
 * for `period` elements of dtype, period <= CHECK_PERIOD. Different seeds give
 * different tables. */
#ifndef DT_TOOLS_BENCH_CHECK_H
#define DT_TOOLS_BENCH_CHECK_H

#include "dt.h"

enum { CHECK_PERIOD = 10007 }; /* a prime: no chunk is a multiple of it */

struct check_kind {
    dt_dtype_t dtype;
    dt_op_t op;
    int ranks;
    uint64_t seed;
};

/* The input of a rank. */
void check_input(void *table, size_t period, const struct check_kind *kind,
                 int rank);

/* The reduction of the inputs of all ranks. */
void check_result(void *table, size_t period, const struct check_kind *kind);

/* Arbitrary bits for operations that only move data; source identifies the
 * sender and the receiver. */
void check_raw(void *table, size_t period, dt_dtype_t dtype, uint64_t seed,
               uint64_t source);

/* Fill buf with elements first, first + 1, ... of the repeated table. */
void check_tile(void *buf, size_t count, const void *table, size_t period,
                size_t size, size_t first);

/* The number of elements of buf that differ from the repeated table. With kind,
 * numbers are compared (0 equals -0, and the quotient of an AVG in F32 or F64
 * may differ in its last bit); without it, bits are compared. */
size_t check_compare(const void *buf, size_t count, const void *table,
                     size_t period, size_t size, size_t first,
                     const struct check_kind *kind);

#endif
