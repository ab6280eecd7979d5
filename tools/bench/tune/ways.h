/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ways.h - by which way collectives on GPU memory go fastest. */
#ifndef DT_TOOLS_BENCH_WAYS_H
#define DT_TOOLS_BENCH_WAYS_H

#include "options.h"

struct ways;

/* Time all ways, inside the nodes and, where there are some, between them, in
 * the sizes of options. Collective. *ways is to be freed. */
dt_result_t ways_measure(const struct options *options, const struct job *job,
                         struct ways **ways, struct dt_error *err);
void ways_free(struct ways *ways); /* NULL is fine */

/* The choice, as lines of the file that DT_TUNE names, and what it is made
 * from, as comments. */
void ways_print(FILE *file, const struct ways *ways);

#endif
