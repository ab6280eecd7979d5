/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.c - collectives of NCCL, from their start to the end of all.
 *
 * NCCL's own end and abort may hang with what they wait for, so a thread does
 * them, and nobody waits for it without an end. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/coll/coll.h"
#include "gpu/coll/nccl_part.h"

/* Seconds: an aborted GPU, or NCCL, that has not come back is taken for lost;
 * who is in a call of NCCL is waited for before an abort. */
#define ABORTED 10
#define IN_CALL 2

/* While NCCL connects: look at it, and at the other ranks. */
#define NAP  50e-6
#define LOOK 0.05

double dt_nccl_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) +
           1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

void dt_nccl_nap(double seconds)
{
    const struct timespec nap = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&nap, NULL);
}

/* ---- start ---- */

static dt_result_t ended(const struct dt_gpu_nccl *nccl, struct dt_error *err)
{
    const struct dt_world *world = nccl->world;
    if (world->failure == DT_SUCCESS)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "NCCL: this communicator has ended");
    *err = world->failure_text;
    return world->failure;
}

static void look_around(struct dt_world *world)
{
    dt_world_lock(world);
    dt_world_progress(world);
    dt_world_listen(world, 0);
    dt_world_check(world);
    dt_gpu_step(world);
    dt_world_unlock(world);
}

/* Until NCCL has put on the stream what it was given. The first of a kind makes
 * it connect, which takes all ranks. */
static dt_result_t settle(struct dt_gpu_nccl *nccl, int code,
                          struct dt_error *err)
{
    struct timespec start;
    double looked = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (code == DT_NCCL_IN_PROGRESS) {
        double now = dt_nccl_since(&start);
        if (nccl->state != DT_NCCL_OPEN)
            return ended(nccl, err);
        if (now > (double)nccl->world->timeout)
            return dt_error_set(err, DT_ERR_TIMED_OUT,
                                "NCCL: it has not connected the ranks within "
                                "%ld s: NCCL_DEBUG=INFO tells more",
                                nccl->world->timeout);
        if (now > looked + LOOK) {
            look_around(nccl->world);
            looked = now;
        }
        dt_nccl_nap(NAP);
        code = dt_nccl_poll(nccl);
    }
    return dt_nccl_error(&nccl->api, nccl->comm, code, "begin a collective",
                         err);
}

dt_result_t dt_nccl_sign(struct dt_gpu_nccl *nccl, dt_stream_t stream,
                         struct dt_error *err)
{
    dt_result_t rc =
        nccl->gpu->ops->signal(nccl->gpu, nccl->device, &nccl->words->done,
                               nccl->last + 1, stream, err);
    if (rc != DT_SUCCESS)
        return rc;
    nccl->last++;
    nccl->stream = stream;
    return DT_SUCCESS;
}

static dt_result_t start(struct dt_gpu_nccl *nccl, const struct dt_shape *shape,
                         const void *sendbuf, void *recvbuf, dt_stream_t stream,
                         struct dt_error *err)
{
    const struct dt_gpu_ops *ops = nccl->gpu->ops;
    struct dt_gpu_scope scope;
    dt_result_t rc = DT_SUCCESS;
    if (nccl->state != DT_NCCL_OPEN)
        return ended(nccl, err);
    if (!sendbuf && !recvbuf && shape->coll == DT_COLL_ALLREDUCE) {
        sendbuf = &nccl->words->added[0];
        recvbuf = &nccl->words->added[1];
    }
    /* the other stream may be gone by now: wait for what it wrote at its end */
    if (stream != nccl->stream && !dt_gpu_nccl_done(nccl, nccl->last))
        rc = ops->await(nccl->gpu, nccl->device, &nccl->words->done, nccl->last,
                        stream, err);
    if (rc == DT_SUCCESS)
        rc = ops->enter(nccl->gpu, nccl->device, &scope, err);
    if (rc != DT_SUCCESS)
        return rc;
    int code = dt_nccl_put(nccl, shape, sendbuf, recvbuf, stream);
    rc = settle(nccl, code, err);
    ops->leave(nccl->gpu, &scope);
    return rc == DT_SUCCESS ? dt_nccl_sign(nccl, stream, err) : rc;
}

dt_result_t dt_gpu_nccl_start(struct dt_gpu_nccl *nccl,
                              const struct dt_shape *shape, const void *sendbuf,
                              void *recvbuf, dt_stream_t stream,
                              uint32_t *ticket, struct dt_error *err)
{
    pthread_mutex_lock(&nccl->lock);
    dt_result_t rc = start(nccl, shape, sendbuf, recvbuf, stream, err);
    if (rc == DT_SUCCESS)
        *ticket = nccl->last;
    pthread_mutex_unlock(&nccl->lock);
    return rc;
}

bool dt_gpu_nccl_done(const struct dt_gpu_nccl *nccl, uint32_t ticket)
{
    uint32_t done = __atomic_load_n(&nccl->words->done, __ATOMIC_ACQUIRE);
    return (int32_t)(done - ticket) >= 0;
}

dt_result_t dt_gpu_nccl_check(struct dt_gpu_nccl *nccl, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    if (nccl->state != DT_NCCL_OPEN || pthread_mutex_trylock(&nccl->lock))
        return DT_SUCCESS; /* who is in there looks, too */
    int code = dt_nccl_poll(nccl);
    if (code != DT_NCCL_IN_PROGRESS)
        rc = dt_nccl_error(&nccl->api, nccl->comm, code, "go on", err);
    pthread_mutex_unlock(&nccl->lock);
    return rc;
}

/* ---- the end ---- */

static bool wait_for(const struct dt_gpu_nccl *nccl, uint32_t ticket,
                     double seconds)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (!dt_gpu_nccl_done(nccl, ticket)) {
        if (dt_nccl_since(&start) > seconds)
            return false;
        dt_nccl_nap(NAP);
    }
    return true;
}

static void end_well(struct dt_gpu_nccl *nccl)
{
    struct timespec start;
    int code = nccl->api.ncclCommFinalize(nccl->comm);
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (code == DT_NCCL_IN_PROGRESS && !nccl->aborted &&
           dt_nccl_since(&start) < (double)nccl->world->timeout) {
        dt_nccl_nap(NAP);
        code = dt_nccl_poll(nccl);
    }
    if (code == DT_NCCL_OK)
        nccl->api.ncclCommDestroy(nccl->comm);
    else
        nccl->api.ncclCommAbort(nccl->comm);
}

static void end(struct dt_gpu_nccl *nccl)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IN_CALL;
    /* an abort is the one call that NCCL takes at the same time as others */
    bool locked = !pthread_mutex_timedlock(&nccl->lock, &until);
    if (nccl->comm && nccl->aborted)
        nccl->api.ncclCommAbort(nccl->comm);
    else if (nccl->comm)
        end_well(nccl);
    if (locked)
        pthread_mutex_unlock(&nccl->lock);
    nccl->state = DT_NCCL_ENDED;
}

/* What it enters ends with it. */
static void *run(void *arg)
{
    struct dt_gpu_nccl *nccl = arg;
    struct dt_gpu_scope scope;
    nccl->gpu->ops->enter(nccl->gpu, nccl->device, &scope, NULL);
    end(nccl);
    return NULL;
}

/* Signals are for the program's threads. */
static void begin_end(struct dt_gpu_nccl *nccl)
{
    pthread_t thread;
    sigset_t all, before;
    int open = DT_NCCL_OPEN;
    if (!atomic_compare_exchange_strong(&nccl->state, &open, DT_NCCL_ENDING))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, run, nccl))
        end(nccl);
    else
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void dt_gpu_nccl_abort(struct dt_gpu_nccl *nccl)
{
    nccl->aborted = true;
    begin_end(nccl);
}

void dt_gpu_nccl_leave(struct dt_gpu_nccl *nccl)
{
    if (nccl && !nccl->aborted &&
        !wait_for(nccl, nccl->last, (double)nccl->world->timeout))
        dt_gpu_nccl_abort(nccl);
}

bool dt_nccl_end(struct dt_gpu_nccl *nccl)
{
    struct timespec start;
    if (nccl->world->failure != DT_SUCCESS)
        nccl->aborted = true;
    const double patience = nccl->aborted ? 0 : (double)nccl->world->timeout;
    begin_end(nccl);
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (nccl->state != DT_NCCL_ENDED) {
        double seconds = dt_nccl_since(&start);
        if (seconds > patience + ABORTED)
            return false; /* its thread still has it */
        dt_nccl_nap(NAP);
    }
    if (nccl->words && !wait_for(nccl, nccl->last, ABORTED))
        return false; /* a GPU may still write there */
    if (nccl->words)
        nccl->gpu->ops->host_free(nccl->gpu, nccl->words);
    pthread_mutex_destroy(&nccl->lock);
    free(nccl);
    return true;
}

void dt_gpu_nccl_close(struct dt_gpu_nccl *nccl)
{
    if (nccl)
        dt_nccl_end(nccl);
}
