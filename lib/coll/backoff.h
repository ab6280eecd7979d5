/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* backoff.h - what to do while nothing moves: spin, then yield the core, then
 * sleep, ever longer. */
#ifndef DT_COLL_BACKOFF_H
#define DT_COLL_BACKOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct dt_backoff {
    unsigned round, spins;
    bool timed;            /* since is set */
    struct timespec since; /* start of this standstill, once it is long */
};

/* nlocal: ranks on this node. There is no spinning when they outnumber the
 * cores. */
void dt_backoff_init(struct dt_backoff *backoff, size_t nlocal);

/* Something moved: be quick again. */
void dt_backoff_reset(struct dt_backoff *backoff);

/* We are nearer to the end: the standstill is over. */
void dt_backoff_restart(struct dt_backoff *backoff);

/* Wait a little. True if so much time has passed that looking around, at the
 * cost of a few system calls, is worth it. */
bool dt_backoff_wait(struct dt_backoff *backoff);

/* How long nothing has moved; exact only after dt_backoff_wait was true. */
long dt_backoff_seconds(const struct dt_backoff *backoff);

#endif
