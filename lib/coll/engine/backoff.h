/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* backoff.h - waiting while nothing moves: spin, then yield the core, then
 * sleep for longer and longer times. */
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
    struct timespec since; /* since when nothing has moved, roughly */
};

/* spins: how often to spin before the core is yielded. sleeper: a transport
 * that wakes this rank whenever something arrives; NULL: sleep by the clock. */
void dt_backoff_init(struct dt_backoff *backoff, unsigned spins,
                     struct dt_tl *sleeper);

/* Something moved: begin with spinning again. */
static inline void dt_backoff_restart(struct dt_backoff *backoff)
{
    backoff->round = 0;
    backoff->timed = false;
}

/* Wait a little. True now and then, when the caller should spend a few system
 * calls on checking the peers. */
bool dt_backoff_wait(struct dt_backoff *backoff);

/* Something moved, but nothing that the caller waits for: do not wait, and
 * begin with spinning when it stops. True now and then, as dt_backoff_wait. */
bool dt_backoff_others(struct dt_backoff *backoff);

/* How long nothing has moved; valid after one of the two was true. */
long dt_backoff_seconds(const struct dt_backoff *backoff);

/* One round of waiting with the lock of the world held, which is released
 * meanwhile: what this thread waits for did not move. Lets other threads in,
 * and sleeps a little unless others moved. Now and then it reads the launcher's
 * events and checks the peers, and fails the world when ranks are gone or
 * nothing arrived for world->timeout seconds. */
void dt_backoff_idle(struct dt_backoff *backoff, struct dt_world *world,
                     bool others);

#endif
