/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* measure.h - measure an operation size by size. */
#ifndef DT_TOOLS_BENCH_MEASURE_H
#define DT_TOOLS_BENCH_MEASURE_H

#include "measure/check.h"
#include "options.h"

struct bench {
    const struct options *options;
    const struct job *job;
    struct buffers buffers;
    char *table;      /* room for CHECK_PERIOD elements of any type */
    double *sample;   /* [MEASURE_MOST or options->iters], us */
    struct row *rows; /* the sizes, types, operations and roots to measure */
    size_t nrows;
};

/* Plan the rows and allocate all memory. Collective. The caller frees bench
 * with bench_clear(). */
dt_result_t bench_make(struct bench *bench, const struct options *options,
                       const struct job *job, struct dt_error *err);
void bench_clear(struct bench *bench);

/* Measure and verify one row. Collective. result->*.measured stays false where
 * libdt does not support the type or operation. */
dt_result_t measure_row(struct bench *bench, const struct row *row,
                        struct result *result, struct dt_error *err);

/* ---- plan.c ---- */

/* The rows that options ask for with so many ranks. The caller frees *rows.
 * Error: NO_MEMORY. */
dt_result_t rows_plan(const struct options *options, int ranks,
                      struct row **rows, size_t *n, struct dt_error *err);

/* ---- verify.c ---- */

/* Fill in the call of a row, with its buffers. */
void verify_aim(const struct bench *bench, const struct row *row, bool inside,
                struct call *call);

/* Fill the send buffer with its pattern and the receive buffer with another
 * one.
 */
void verify_fill(const struct bench *bench, const struct call *call,
                 uint64_t seed);

/* After the call: the number of wrong elements on this rank. */
size_t verify_count(const struct bench *bench, const struct call *call,
                    uint64_t seed);

#endif
