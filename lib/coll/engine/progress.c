/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.c - the progress thread.
 *
 *   asleep --wake--> moving --nothing moved--> waiting, longer each time
 *          <--nothing in progress--  <--the time is over--
 */
#include "coll/engine/progress.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "coll/engine/backoff.h"
#include "coll/engine/device.h"

/* Nanoseconds: long enough to leave the core to the program, short compared
 * with a collective that is worth overlapping. */
#define WAIT_FIRST 20000
#define WAIT_LAST  500000
#define CHECK      50000000 /* between two checks of the peers */

/* Is any request in progress? One that is complete waits for its owner only. */
static bool outstanding(const struct dt_world *world)
{
    for (size_t i = 0; world->failure == DT_SUCCESS && i < world->ncomms; i++)
        if (world->comms[i] && world->comm_ops->active(world->comms[i]))
            return true;
    return false;
}

/* Until something is started; where the device may run what the host does
 * not know of, check from time to time that all ranks are there. */
static void sleep_on(struct dt_progress *progress)
{
    struct dt_world *world = progress->world;
    struct timespec end;
    progress->asleep = true;
    if (!dt_device_hidden(world)) {
        pthread_cond_wait(&progress->wake, &world->lock);
        progress->asleep = false;
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += CHECK;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&progress->wake, &world->lock, &end);
    progress->asleep = false;
    dt_world_progress(world);
    dt_world_listen(world, 0);
    dt_world_check(world);
    dt_device_step(world);
}

/* Move all; true if anything moved that counts here. *others: anything did. */
static bool move(struct dt_world *world, bool device, bool *others)
{
    uint64_t before = device ? world->device->moves : 0;
    *others = dt_world_progress(world);
    if (!device)
        return *others;
    dt_device_step(world);
    return world->device->moves != before;
}

static void *run(void *arg)
{
    struct dt_progress *progress = arg;
    struct dt_world *world = progress->world;
    struct timespec pause = {.tv_nsec = WAIT_FIRST};
    struct dt_backoff backoff; /* while the device has work */
    dt_backoff_init(&backoff, 0, NULL);
    dt_world_lock(world);
    while (!progress->ending) {
        bool device = dt_device_busy(world), others;
        if (!device && !(progress->all && outstanding(world))) {
            sleep_on(progress);
        } else if (!move(world, device, &others)) {
            if (device) {
                world->device->ops->idle(&backoff, world, others);
                continue;
            }
            dt_world_unlock(world);
            nanosleep(&pause, NULL);
            if (pause.tv_nsec < WAIT_LAST)
                pause.tv_nsec *= 2;
            dt_world_lock(world);
            continue;
        } else {
            dt_world_let_in(world);
        }
        pause.tv_nsec = WAIT_FIRST;
        dt_backoff_restart(&backoff);
    }
    dt_world_unlock(world);
    return NULL;
}

/* The thread takes no signals: they are for the threads of the program. */
static int create(struct dt_progress *progress)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&progress->thread, NULL, run, progress);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static dt_result_t start(struct dt_world *world, bool all, struct dt_error *err)
{
    struct dt_progress *progress = calloc(1, sizeof(*progress));
    pthread_condattr_t attr;
    if (!progress)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for the progress thread");
    progress->world = world;
    progress->all = all;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->wake, &attr);
    pthread_condattr_destroy(&attr);
    int rc = create(progress);
    if (rc) {
        pthread_cond_destroy(&progress->wake);
        free(progress);
        return dt_error_set(err, DT_ERR_SYSTEM, "the progress thread: %s",
                            strerror(rc));
    }
    world->progress = progress;
    return DT_SUCCESS;
}

dt_result_t dt_progress_start(struct dt_world *world, struct dt_error *err)
{
    const char *how = getenv(DT_ENV_PROGRESS);
    if (!how || !*how)
        return DT_SUCCESS;
    if (strcmp(how, DT_ENV_PROGRESS_THREAD) != 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            DT_ENV_PROGRESS
                            "=%s: expected " DT_ENV_PROGRESS_THREAD
                            ", or nothing: progress inside calls only",
                            how);
    return start(world, true, err);
}

dt_result_t dt_progress_need(struct dt_world *world, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    dt_world_lock(world);
    if (!world->progress)
        rc = start(world, false, err);
    dt_world_unlock(world);
    return rc;
}

void dt_progress_stop(struct dt_world *world)
{
    struct dt_progress *progress = world->progress;
    if (!progress)
        return;
    dt_world_lock(world);
    progress->ending = true;
    world->progress = NULL;
    pthread_cond_signal(&progress->wake);
    dt_world_unlock(world);
    pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->wake);
    free(progress);
}
