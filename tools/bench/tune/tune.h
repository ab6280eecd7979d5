/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tune.h - the parameters of this machine, from which libdt predicts what an
 * algorithm costs, and by which it chooses the way of calls on GPU memory. */
#ifndef DT_TOOLS_BENCH_TUNE_H
#define DT_TOOLS_BENCH_TUNE_H

#include "options.h"

/* Measure them, those of GPU memory with --mem cuda only, and write the file
 * that DT_TUNE names; what cannot be measured
 * with these ranks is left out, and libdt keeps its own. Collective. */
dt_result_t tune_run(const struct options *options, const struct job *job,
                     struct dt_error *err);

#endif
