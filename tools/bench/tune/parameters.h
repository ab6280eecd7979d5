/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* parameters.h - measure the tuning parameters of this machine. */
#ifndef DT_TOOLS_BENCH_PARAMETERS_H
#define DT_TOOLS_BENCH_PARAMETERS_H

#include "options.h"

/* Measure them, those of GPU memory only with --mem cuda, and write the file
 * that DT_TUNE names. Parameters that these ranks cannot measure are left out,
 * and libdt uses its defaults. Collective. */
dt_result_t tune_run(const struct options *options, const struct job *job,
                     struct dt_error *err);

#endif
