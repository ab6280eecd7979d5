/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.h - a thread of libdt's own, that moves what is outstanding while
 * the program computes, and sleeps while nothing is: all with
 * DT_PROGRESS=thread, and always what is of the device (device.h). */
#ifndef DT_COLL_ENGINE_PROGRESS_H
#define DT_COLL_ENGINE_PROGRESS_H

#include "coll/engine/world.h"

struct dt_progress {
    struct dt_world *world;
    pthread_t thread;
    pthread_cond_t wake; /* with the lock of the world */
    bool all;            /* not only what is of the device */
    bool asleep, ending;
};

/* Read DT_PROGRESS, and start the thread (world->progress) if it asks for one.
 * Errors: INVALID_ARG, NO_MEMORY, SYSTEM. */
dt_result_t dt_progress_start(struct dt_world *world, struct dt_error *err);

/* Start it, if it is not there, for what is of the device. Errors: NO_MEMORY,
 * SYSTEM.
 */
dt_result_t dt_progress_need(struct dt_world *world, struct dt_error *err);

/* End it; nothing happens where there is none. */
void dt_progress_stop(struct dt_world *world);

/* Something has been started. With the lock held. NULL is fine. */
static inline void dt_progress_wake(struct dt_progress *progress)
{
    if (progress && progress->asleep)
        pthread_cond_signal(&progress->wake);
}

#endif
