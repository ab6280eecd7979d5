/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* idle.h - one round of waiting. */
#ifndef DT_COLL_ENGINE_IDLE_H
#define DT_COLL_ENGINE_IDLE_H

#include "coll/engine/backoff.h"
#include "coll/engine/world.h"

/* What this thread waits for did not move: let other threads in, and unless
 * others moved, wait a little. Either way, look around now and then, and fail
 * the world when ranks are gone or the time is over. The lock is held, but
 * given up meanwhile. */
void dt_idle(struct dt_backoff *backoff, struct dt_world *world, bool others);

#endif
