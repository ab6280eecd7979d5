/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* clock.h - the monotonic clock. */
#ifndef DT_PMIX_CLOCK_H
#define DT_PMIX_CLOCK_H

#include <stdint.h>
#include <time.h>

/* A point in time that never comes. */
#define DT_NEVER INT64_MAX

/* Milliseconds of the monotonic clock. */
static inline int64_t dt_pmix_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
