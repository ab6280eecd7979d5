/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tune.h - the measured parameters of a machine, from which the costs of
 * algorithms are predicted.
 *
 * A text file, one `name = value` per line, `#` begins a comment: what
 * `dt-bench --tune` writes and DT_TUNE names. All ranks use those of rank 0. */
#ifndef DT_COLL_TUNE_H
#define DT_COLL_TUNE_H

#include <stdio.h>

#include "base/error.h"

/* Seconds, and seconds per byte. */
struct dt_tune {
    double node_latency; /* a flag from one core to another */
    double node_byte;    /* copy, into or out of shared memory */
    double fold_byte;    /* per input of a reduction */
    double net_latency;  /* a short message between nodes */
    double net_byte;     /* a long one, on one rail */
    double task;         /* what any task of a schedule costs */
};

extern const struct dt_tune dt_tune_default;

/* Read a file; names that are missing keep what *tune holds. Errors: IO;
 * INVALID_ARG names the file, the line and what was expected. */
dt_result_t dt_tune_read(const char *path, struct dt_tune *tune,
                         struct dt_error *err);

/* Write one that dt_tune_read reads. Error IO. */
dt_result_t dt_tune_write(FILE *file, const struct dt_tune *tune,
                          struct dt_error *err);

#endif
