/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* options.h - the command line of dt-bench. */
#ifndef DT_TOOLS_BENCH_OPTIONS_H
#define DT_TOOLS_BENCH_OPTIONS_H

#include "bench.h"

struct options {
    const struct operation *operation;
    size_t minbytes, maxbytes;
    size_t stepbytes, stepfactor; /* one of them is 0 */
    size_t iters;                 /* 0: as many as take some time */
    size_t warmups, checks;
    unsigned dtypes, ops; /* bits of dt_dtype_t and dt_op_t */
    int root;             /* -1: each in turn */
    enum memory memory;
    bool blocking, inside, outside, stats;
    bool json, limit, pairwise, alone;
    const char *svg, *tune; /* files, or NULL */
    bool help, version;
};

/* INVALID_ARG, with a line for the user. What depends on the number of ranks
 * is for options_check(). */
dt_result_t options_parse(struct options *options, int argc, char **argv,
                          struct dt_error *err);
dt_result_t options_check(const struct options *options, int ranks,
                          struct dt_error *err);

void options_help(FILE *out);

#endif
