/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* output.h - output files, which are written after the last measurement. */
#ifndef DT_TOOLS_BENCH_OUTPUT_H
#define DT_TOOLS_BENCH_OUTPUT_H

#include "bench.h"

struct output {
    const char *path;
    FILE *file; /* NULL: nothing to write on this rank */
};

/* Open path on rank 0 without changing the file yet; "-" is standard output,
 * NULL none. Collective: a path that cannot be opened is reported before
 * anything is measured. Error: IO. */
dt_result_t output_open(struct output *output, const char *path,
                        const struct job *job, struct dt_error *err);

/* Truncate the file before the new content. Error: IO. */
dt_result_t output_begin(const struct output *output, struct dt_error *err);

/* Close the file. Returns rc if that is an error, else IO if a write failed. */
dt_result_t output_close(struct output *output, dt_result_t rc,
                         struct dt_error *err);

#endif
