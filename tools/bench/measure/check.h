/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* check.h - inputs whose reduction is known beforehand, to the bit, for every
 * type, operation and number of ranks: each sum of a part of them, in any
 * order, is exact, so that a contribution lost, doubled or misplaced shows.
 *
 * A buffer repeats a table of at most CHECK_PERIOD elements. Tables have room
 * for `period` elements of dtype, period <= CHECK_PERIOD; seed tells one
 * check from another. */
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

/* What rank contributes. */
void check_input(void *table, size_t period, const struct check_kind *kind,
                 int rank);

/* What all of them make together. */
void check_result(void *table, size_t period, const struct check_kind *kind);

/* Any bits, which are only moved; source tells who sends them, and to whom. */
void check_raw(void *table, size_t period, dt_dtype_t dtype, uint64_t seed,
               uint64_t source);

/* Elements first, first + 1, ... of the endless repetition into buf. */
void check_tile(void *buf, size_t count, const void *table, size_t period,
                size_t size, size_t first);

/* How many elements of buf are not those. With kind, equal numbers are equal
 * (0 and -0, too), and a quotient of AVG in F32 or F64 may be off by its last
 * bit; without, bits count. */
size_t check_compare(const void *buf, size_t count, const void *table,
                     size_t period, size_t size, size_t first,
                     const struct check_kind *kind);

#endif
