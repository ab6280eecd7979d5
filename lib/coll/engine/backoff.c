/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* backoff.c - spin, yield, sleep.
 *
 *   rounds          does                       true
 *   0 .. spins      pause                      no
 *   .. + YIELDS     sched_yield                no
 *   beyond          sleep until woken, at most
 *                   20 us .. 1 ms by the clock
 *                   or 1 ms .. 50 ms           every LOOK rounds
 */
#include "coll/engine/backoff.h"

#include <sched.h>

#include "base/env.h"

#define YIELDS   200
#define LOOK     8
#define SLEEP_US 20 /* the first sleep by the clock */
#define OTHERS   64

void dt_backoff_init(struct dt_backoff *backoff, unsigned spins,
                     struct dt_tl *sleeper)
{
    *backoff = (struct dt_backoff){.spins = spins, .sleeper = sleeper};
}

static inline void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_round(struct dt_tl *sleeper, unsigned round)
{
    unsigned doublings = round / 16 < 6 ? round / 16 : 6;
    unsigned us = SLEEP_US << doublings;
    if (us > 1000)
        us = 1000;
    if (sleeper)
        sleeper->ops->sleep(sleeper, us * 50);
    else
        nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

static void start_clock(struct dt_backoff *backoff)
{
    if (!backoff->timed)
        clock_gettime(CLOCK_MONOTONIC, &backoff->since);
    backoff->timed = true;
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
    start_clock(backoff);
    sleep_round(backoff->sleeper, round);
    return round % LOOK == LOOK - 1;
}

bool dt_backoff_others(struct dt_backoff *backoff)
{
    backoff->round = 0;
    if (++backoff->others % OTHERS)
        return false;
    start_clock(backoff);
    return true;
}

long dt_backoff_seconds(const struct dt_backoff *backoff)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - backoff->since.tv_sec -
           (now.tv_nsec < backoff->since.tv_nsec);
}

static void give_up(struct dt_world *world)
{
    struct dt_error late;
    dt_error_set(&late, DT_ERR_TIMED_OUT,
                 "nothing arrived for %ld s (" DT_ENV_TIMEOUT "): a rank "
                 "is stopped, or did not call the same collective",
                 world->timeout);
    dt_world_fail(world, DT_ERR_TIMED_OUT, &late);
}

void dt_backoff_idle(struct dt_backoff *backoff, struct dt_world *world,
                     bool others)
{
    bool look;
    if (others) {
        look = dt_backoff_others(backoff);
        dt_world_let_in(world);
    } else {
        dt_world_listen(world, 0);
        dt_world_unlock(world);
        look = dt_backoff_wait(backoff);
        dt_world_lock(world);
    }
    if (!look)
        return;
    dt_world_listen(world, 0);
    dt_world_check(world);
    if (world->failure == DT_SUCCESS &&
        dt_backoff_seconds(backoff) >= world->timeout)
        give_up(world);
}
