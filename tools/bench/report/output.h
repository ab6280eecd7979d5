/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* output.h - files that are written when all has been measured. */
#ifndef DT_TOOLS_BENCH_OUTPUT_H
#define DT_TOOLS_BENCH_OUTPUT_H

#include "bench.h"

struct output {
    const char *path;
    FILE *file; /* NULL: nothing to write on this rank */
};

/* Open path, of which nothing is changed yet, on rank 0; "-" is standard
 * output, NULL nothing. Collective, so that a bad name is told at once. IO. */
dt_result_t output_open(struct output *output, const char *path,
                        const struct job *job, struct dt_error *err);

/* Take out what was there: now comes the new. IO. */
dt_result_t output_begin(const struct output *output, struct dt_error *err);

/* The end of it, unless rc is a failure, which is then returned. IO. */
dt_result_t output_close(struct output *output, dt_result_t rc,
                         struct dt_error *err);

#endif
