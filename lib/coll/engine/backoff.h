/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* backoff.h - what to do while nothing moves: spin, then yield the core, then
 * sleep, ever longer. */
#ifndef DT_COLL_ENGINE_BACKOFF_H
#define DT_COLL_ENGINE_BACKOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "coll/engine/world.h"

struct dt_backoff {
    unsigned round, spins, others;
    struct dt_tl *sleeper;
    bool timed;            /* since is set */
    struct timespec since; /* start of this standstill, once it is long */
};

/* spins: before the core is yielded. sleeper: the transport that is told of
 * all that may come, and wakes us; NULL: sleep by the clock. */
void dt_backoff_init(struct dt_backoff *backoff, unsigned spins,
                     struct dt_tl *sleeper);

/* We are nearer to the end: the standstill is over, be quick again. */
static inline void dt_backoff_restart(struct dt_backoff *backoff)
{
    backoff->round = 0;
    backoff->timed = false;
}

/* Wait a little. True if so much time has passed that looking around, at the
 * cost of a few system calls, is worth it. */
bool dt_backoff_wait(struct dt_backoff *backoff);

/* Things move, but none that we wait for: do not wait, but be quick when they
 * stop. True once in a while, as from dt_backoff_wait. */
bool dt_backoff_others(struct dt_backoff *backoff);

/* How long nothing has moved; exact only after one of them was true. */
long dt_backoff_seconds(const struct dt_backoff *backoff);

/* One round of waiting with the lock of the world held, which is released
 * meanwhile: what this thread waits for did not move. Lets other threads in,
 * and sleeps a little unless others moved. Now and then it reads the launcher's
 * events and checks the peers, and fails the world when ranks are gone or
 * nothing arrived for world->timeout seconds. */
void dt_backoff_idle(struct dt_backoff *backoff, struct dt_world *world,
                     bool others);

#endif
