/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* measure.h - one size after the other. */
#ifndef DT_TOOLS_BENCH_MEASURE_H
#define DT_TOOLS_BENCH_MEASURE_H

#include "measure/check.h"
#include "options.h"

struct bench {
    const struct options *options;
    const struct job *job;
    struct buffers buffers;
    char *table;      /* CHECK_PERIOD elements of any type */
    double *sample;   /* [MEASURE_MOST or options->iters], us */
    struct row *rows; /* what is to be measured */
    size_t nrows;
    struct progress progress;
};

/* Plan the rows and get all the memory. Collective. bench is to be freed by
 * bench_clear(). */
dt_result_t bench_make(struct bench *bench, const struct options *options,
                       const struct job *job, struct dt_error *err);
void bench_clear(struct bench *bench);

/* Time and check one row. Collective. result->*.measured stays false where
 * libdt has no such type or operation. */
dt_result_t measure_row(struct bench *bench, const struct row *row,
                        struct result *result, struct dt_error *err);

/* ---- plan.c ---- */

/* What options ask for on so many ranks: *rows is to be freed. NO_MEMORY. */
dt_result_t rows_plan(const struct options *options, int ranks,
                      struct row **rows, size_t *n, struct dt_error *err);

/* ---- verify.c ---- */

/* The call of a row, with buffers set. */
void verify_aim(const struct bench *bench, const struct row *row, bool inside,
                struct call *call);

/* Fill what call sends, and make what it receives dirty. */
void verify_fill(const struct bench *bench, const struct call *call,
                 uint64_t seed);

/* After the call: how many elements are wrong on this rank. */
size_t verify_count(const struct bench *bench, const struct call *call,
                    uint64_t seed);

#endif
