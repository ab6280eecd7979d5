/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* report.h - print the results. */
#ifndef DT_TOOLS_BENCH_REPORT_H
#define DT_TOOLS_BENCH_REPORT_H

#include "measure/limit.h"
#include "options.h"

struct report {
    const struct options *options;
    const struct job *job;
    const struct limit *limit; /* NULL: not requested */
    struct result *result;
    size_t n;
};

/* The number of wrong elements; the mean bus bandwidth of all timings; the
 * number of timings. */
double report_wrong(const struct report *report);
double report_busbw(const struct report *report);
size_t report_measured(const struct report *report);

/* The limit's time divided by the measured time: 1 means at the limit. */
double report_share(const struct result *result, const struct timing *timing);

/* ---- table.c: the columns of nccl-tests ---- */

void table_head(FILE *out, const struct report *report);
void table_row(FILE *out, const struct report *report,
               const struct result *result);
void table_foot(FILE *out, const struct report *report);

/* ---- other forms ---- */

/* IO. */
dt_result_t json_print(FILE *out, const struct report *report,
                       struct dt_error *err);
void plot_print(FILE *out, const struct report *report);

#endif
