/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* deadline.c - the end of the job. All times are nanoseconds of
 * CLOCK_MONOTONIC_COARSE. */
#include "base/deadline.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/env.h"

#define SECOND     INT64_C(1000000000)
#define MARGIN_MAX (60 * SECOND)
#define LATEST     100000000000 /* seconds since 1970: the year 5138 */

static int64_t end; /* 0: unknown */
static int64_t margin;
static _Atomic int64_t cost; /* of a checkpoint */
static _Atomic int64_t step; /* the length of a training step */
static _Atomic int64_t last; /* when the last step ended; 0: none has */

static int64_t now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return ts.tv_sec * SECOND + ts.tv_nsec;
}

static void find_end(void)
{
    long at = 0;
    if (dt_env_long(DT_ENV_JOB_END, 0, 0, LATEST, &at, NULL) != DT_SUCCESS ||
        at == 0)
        dt_env_long("SLURM_JOB_END_TIME", 0, 0, LATEST, &at, NULL);
    if (at == 0)
        return;
    /* in seconds first, as LATEST in nanoseconds overflows */
    int64_t left = at - now(CLOCK_REALTIME) / SECOND;
    if (left > LATEST / 100)
        return;
    if (left < 0)
        left = 0;
    margin = left * SECOND / 10;
    if (margin > MARGIN_MAX)
        margin = MARGIN_MAX;
    end = now(CLOCK_MONOTONIC_COARSE) + left * SECOND;
}

static void find_end_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_end);
}

double dt_deadline_left(void)
{
    find_end_once();
    if (end == 0)
        return -1;
    int64_t left = end - now(CLOCK_MONOTONIC_COARSE);
    return left > 0 ? (double)left / (double)SECOND : 0;
}

void dt_deadline_reserve(double seconds)
{
    find_end_once();
    const double most = (double)(INT64_MAX / 4 / SECOND);
    if (seconds >= 0) /* not NaN */
        cost = (int64_t)((seconds < most ? seconds : most) * (double)SECOND);
}

void dt_deadline_step(void)
{
    find_end_once();
    if (end == 0)
        return;
    int64_t at = now(CLOCK_MONOTONIC_COARSE);
    int64_t took = last ? at - last : 0, before = step;
    /* a maximum that decays: some steps take longer, as one with an evaluation,
     * and a program may call twice between two steps */
    step = took > before ? took : before - before / 16;
    last = at;
}

bool dt_deadline_near(void)
{
    return end != 0 &&
           end - now(CLOCK_MONOTONIC_COARSE) <= margin + cost + step;
}
