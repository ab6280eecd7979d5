/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.h - the progress thread: makes progress of requests while the
 * program computes, and sleeps while none is in progress. It serves all
 * requests with DT_PROGRESS=thread, and without it those of the device
 * (device.h). */
#ifndef DT_COLL_ENGINE_PROGRESS_H
#define DT_COLL_ENGINE_PROGRESS_H

#include "coll/engine/world.h"

struct dt_progress {
    struct dt_world *world;
    pthread_t thread;
    pthread_cond_t wake; /* with the lock of the world */
    bool all;            /* not only requests of the device */
    bool asleep, ending;
};

/* Read DT_PROGRESS, and start the thread (world->progress) if it asks for one.
 * Errors: INVALID_ARG, NO_MEMORY, SYSTEM. */
dt_result_t dt_progress_start(struct dt_world *world, struct dt_error *err);

/* Start it for requests of the device, unless it runs. Takes the lock. Errors:
 * NO_MEMORY, SYSTEM. */
dt_result_t dt_progress_need(struct dt_world *world, struct dt_error *err);

/* End it, if it runs. Takes the lock. */
void dt_progress_stop(struct dt_world *world);

/* A request was started. With the lock held. NULL is fine. */
static inline void dt_progress_wake(struct dt_progress *progress)
{
    if (progress && progress->asleep)
        pthread_cond_signal(&progress->wake);
}

#endif
