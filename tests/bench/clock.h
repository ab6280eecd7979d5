/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* clock.h - what the programs that time checkpoints share: the clock, the
 * median, and an end with a reason. */
#ifndef DT_BENCH_CLOCK_H
#define DT_BENCH_CLOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dt.h"

/* Seconds since some time. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Unless fine, end the program: what went wrong, and libdt's or errno's reason.
 */
static inline void need(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
                *dt_last_error() ? dt_last_error() : strerror(errno));
        exit(1);
    }
}

static inline int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How often each thing is timed. */
enum { ROUNDS = 7 };

static inline double median(const double value[ROUNDS])
{
    double sorted[ROUNDS];
    memcpy(sorted, value, sizeof(sorted));
    qsort(sorted, ROUNDS, sizeof(*sorted), rising);
    return sorted[ROUNDS / 2];
}

#endif
