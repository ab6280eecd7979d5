/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* backoff.c - spin, yield, sleep.
 *
 *   rounds          does                     looks around
 *   0 .. spins      pause                    no
 *   .. + YIELDS     sched_yield              no
 *   beyond          sleep 20 us .. 1 ms      every LOOK rounds
 */
#include "coll/backoff.h"

#include <sched.h>
#include <unistd.h>

#define SPINS  2000
#define YIELDS 200
#define LOOK   8

void dt_backoff_init(struct dt_backoff *backoff, size_t nlocal)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    backoff->spins = cores > 0 && nlocal <= (size_t)cores ? SPINS : 0;
    dt_backoff_reset(backoff);
    dt_backoff_restart(backoff);
}

void dt_backoff_reset(struct dt_backoff *backoff)
{
    backoff->round = 0;
}

void dt_backoff_restart(struct dt_backoff *backoff)
{
    backoff->timed = false;
}

static inline void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_round(unsigned round)
{
    unsigned doublings = round / 16 < 6 ? round / 16 : 6;
    long nanoseconds = 20000L << doublings;
    const struct timespec pause = {
        .tv_nsec = nanoseconds < 1000000 ? nanoseconds : 1000000};
    nanosleep(&pause, NULL);
}

bool dt_backoff_wait(struct dt_backoff *backoff)
{
    unsigned round = backoff->round++;
    if (round < backoff->spins) {
        pause_core();
        return false;
    }
    round -= backoff->spins;
    if (round < YIELDS) {
        sched_yield();
        return false;
    }
    round -= YIELDS;
    if (!backoff->timed)
        clock_gettime(CLOCK_MONOTONIC, &backoff->since);
    backoff->timed = true;
    sleep_round(round);
    return round % LOOK == LOOK - 1;
}

long dt_backoff_seconds(const struct dt_backoff *backoff)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - backoff->since.tv_sec -
           (now.tv_nsec < backoff->since.tv_nsec);
}
