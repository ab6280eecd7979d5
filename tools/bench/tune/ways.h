/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ways.h - measure which way collectives on GPU memory go fastest. */
#ifndef DT_TOOLS_BENCH_WAYS_H
#define DT_TOOLS_BENCH_WAYS_H

#include "options.h"
#include "tune/tune.h"

struct ways;

/* Measure all ways inside the nodes and, with several nodes, between them, at
 * the sizes of options. Collective. The caller frees *ways with ways_free(),
 * which accepts NULL. */
dt_result_t ways_measure(const struct options *options, const struct job *job,
                         struct ways **ways, struct dt_error *err);
void ways_free(struct ways *ways);

/* Print the times to file, as comments, and set the rules of tune that they
 * lead to. */
void ways_report(FILE *file, const struct ways *ways, struct dt_tune *tune);

#endif
