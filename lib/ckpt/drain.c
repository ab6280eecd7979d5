/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* drain.c - the thread that writes behind the program. */
#include "ckpt/drain.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct dt_drain {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    void (*fn)(void *arg); /* NULL: nothing is under way */
    void *arg;
    int waiting;
    bool over;
};

static void *drain_main(void *arg)
{
    struct dt_drain *drain = arg;
    pthread_mutex_lock(&drain->lock);
    for (;;) {
        while (!drain->fn && !drain->over)
            pthread_cond_wait(&drain->moved, &drain->lock);
        if (!drain->fn)
            break;
        pthread_mutex_unlock(&drain->lock);
        drain->fn(drain->arg);
        pthread_mutex_lock(&drain->lock);
        drain->fn = NULL;
        pthread_cond_broadcast(&drain->moved);
    }
    pthread_mutex_unlock(&drain->lock);
    return NULL;
}

dt_result_t dt_drain_start(struct dt_drain **drain, struct dt_error *err)
{
    sigset_t all, old;
    struct dt_drain *new = calloc(1, sizeof(*new));
    if (!new)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    pthread_mutex_init(&new->lock, NULL);
    pthread_cond_init(&new->moved, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&new->thread, NULL, drain_main, new);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        free(new);
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "cannot start a thread to write checkpoints: %s",
                            strerror(rc));
    }
    *drain = new;
    return DT_SUCCESS;
}

void dt_drain_run(struct dt_drain *drain, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&drain->lock);
    drain->fn = fn;
    drain->arg = arg;
    pthread_cond_broadcast(&drain->moved);
    pthread_mutex_unlock(&drain->lock);
}

void dt_drain_wait(struct dt_drain *drain)
{
    pthread_mutex_lock(&drain->lock);
    drain->waiting++;
    pthread_cond_broadcast(&drain->moved); /* a writer that keeps its pace */
    while (drain->fn)
        pthread_cond_wait(&drain->moved, &drain->lock);
    drain->waiting--;
    pthread_mutex_unlock(&drain->lock);
}

void dt_drain_stop(struct dt_drain *drain)
{
    if (!drain)
        return;
    dt_drain_wait(drain);
    pthread_mutex_lock(&drain->lock);
    drain->over = true;
    pthread_cond_broadcast(&drain->moved);
    pthread_mutex_unlock(&drain->lock);
    pthread_join(drain->thread, NULL);
    pthread_cond_destroy(&drain->moved);
    pthread_mutex_destroy(&drain->lock);
    free(drain);
}

bool dt_drain_awaited(struct dt_drain *drain)
{
    pthread_mutex_lock(&drain->lock);
    bool awaited = drain->waiting > 0;
    pthread_mutex_unlock(&drain->lock);
    return awaited;
}
