/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* idle.c - one round of waiting. */
#include "coll/engine/idle.h"

#include "base/env.h"

static void give_up(struct dt_world *world)
{
    struct dt_error late;
    dt_error_set(&late, DT_ERR_TIMED_OUT,
                 "nothing arrived for %ld s (" DT_ENV_TIMEOUT "): a rank "
                 "is stopped, or did not call the same collective",
                 world->timeout);
    dt_world_fail(world, DT_ERR_TIMED_OUT, &late);
}

void dt_idle(struct dt_backoff *backoff, struct dt_world *world, bool others)
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
