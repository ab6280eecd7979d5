/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* report.h - what becomes of the results. */
#ifndef DT_TOOLS_BENCH_REPORT_H
#define DT_TOOLS_BENCH_REPORT_H

#include "measure/limit.h"
#include "options.h"

struct report {
    const struct options *options;
    const struct job *job;
    const struct limit *limit; /* NULL: not asked */
    struct result *result;
    size_t n;
};

/* Elements that were wrong; the mean bus bandwidth of all that was measured;
 * how many times that was. */
double report_wrong(const struct report *report);
double report_busbw(const struct report *report);
size_t report_measured(const struct report *report);

/* What limits a row, as a share of what was measured: 1 is all there is. */
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
