/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.c - who makes progress. */
#include "grad/progress.h"

#include <string.h>
#include <time.h>

#include "coll/engine/engine.h"

#define NAP_LEAST 20e-6  /* seconds, while something is under way */
#define NAP_MOST  500e-6 /* and nothing moves */
#define NAP_AWAY  2e-3   /* while a thread of the program makes progress */
#define NAP_IDLE  1.0

/* ---- a thread of the program ---- */

void dt_grad_progress_await(struct dt_grad *grad, bool (*done)(void *arg),
                            void *arg, double seconds)
{
    struct dt_backoff backoff;
    double start = dt_grad_now();
    dt_backoff_init(&backoff, grad->spins, NULL);
    atomic_fetch_add(&grad->waiters, 1);
    while (!done(arg)) {
        pthread_mutex_lock(&grad->drive);
        bool moved = grad->pass(grad);
        pthread_mutex_unlock(&grad->drive);
        if (seconds >= 0 && dt_grad_now() - start >= seconds)
            break;
        if (moved)
            dt_backoff_restart(&backoff);
        else
            dt_backoff_wait(&backoff);
    }
    pthread_mutex_lock(&grad->submit);
    if (atomic_fetch_sub(&grad->waiters, 1) == 1 && grad->woken)
        pthread_cond_signal(&grad->wake);
    grad->stats.wait_seconds += dt_grad_now() - start;
    pthread_mutex_unlock(&grad->submit);
}

/* ---- the engine's thread ---- */

void dt_grad_progress_call(struct dt_grad *grad)
{
    grad->woken = true;
    if (atomic_load(&grad->waiters) == 0)
        pthread_cond_signal(&grad->wake);
}

static void nap(struct dt_grad *grad, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long ns = until.tv_nsec + (long)(seconds * 1e9);
    until.tv_sec += ns / 1000000000L;
    until.tv_nsec = ns % 1000000000L;
    pthread_cond_timedwait(&grad->wake, &grad->submit, &until);
}

static double nap_of(const struct dt_grad *grad, bool busy, bool moved,
                     double last)
{
    if (atomic_load(&grad->waiters) > 0)
        return NAP_AWAY;
    if (!busy)
        return NAP_IDLE;
    if (moved)
        return 0;
    if (last < NAP_LEAST || last >= NAP_AWAY)
        return NAP_LEAST;
    return last < NAP_MOST / 2 ? 2 * last : NAP_MOST;
}

static void *drive(void *arg)
{
    struct dt_grad *grad = arg;
    double length = 0;
    pthread_mutex_lock(&grad->submit);
    while (!grad->ending) {
        grad->woken = false;
        pthread_mutex_unlock(&grad->submit);
        pthread_mutex_lock(&grad->drive);
        bool moved = grad->pass(grad);
        bool busy = grad->busy(grad);
        pthread_mutex_unlock(&grad->drive);
        pthread_mutex_lock(&grad->submit);
        length = nap_of(grad, busy, moved, length);
        if (!grad->woken && !grad->ending && length > 0)
            nap(grad, length);
    }
    pthread_mutex_unlock(&grad->submit);
    return NULL;
}

dt_result_t dt_grad_progress_begin(struct dt_grad *grad, struct dt_error *err)
{
    pthread_attr_t attr;
    int code = pthread_attr_init(&attr);
    if (code == 0) {
        code = pthread_create(&grad->thread, &attr, drive, grad);
        pthread_attr_destroy(&attr);
    }
    if (code != 0)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "no thread for the gradient engine: %s",
                            strerror(code));
    grad->running = true;
    return DT_SUCCESS;
}

void dt_grad_progress_end(struct dt_grad *grad)
{
    if (!grad->running)
        return;
    pthread_mutex_lock(&grad->submit);
    grad->ending = true;
    pthread_cond_signal(&grad->wake);
    pthread_mutex_unlock(&grad->submit);
    pthread_join(grad->thread, NULL);
    grad->running = false;
}
