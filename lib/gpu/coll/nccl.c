/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.c - the life of a communicator of NCCL. It is opened in three steps, and
 * the ranks vote after each, so that all of them come to the same answer:
 *
 *   1. find NCCL, name the GPU; rank 0 makes an id
 *   2. begin a communicator of that id
 *   3. add some numbers
 *
 * In steps 2 and 3 each rank waits for all others, so they check together, time
 * and again, whether one has failed or the time is over.
 *
 * NCCL's own end and abort may hang with what they wait for, so a thread calls
 * them, and every wait for it has a time limit. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/coll/coll.h"
#include "gpu/coll/nccl.h"
#include "gpu/coll/vote.h"

/* Seconds: an aborted GPU, or NCCL, that has not come back is taken for lost;
 * who is in a call of NCCL is waited for before an abort. */
#define ABORTED 10
#define IN_CALL 2

/* While NCCL connects: look at it, and at the other ranks. */
#define POLL 50e-6
#define LOOK 0.05

static double since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) +
           1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

static void sleep_for(double seconds)
{
    const struct timespec time = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&time, NULL);
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
        double now = since(&start);
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
        sleep_for(POLL);
        code = dt_nccl_poll(nccl);
    }
    return dt_nccl_error(&nccl->api, nccl->comm, code, "begin a collective",
                         err);
}

static dt_result_t sign(struct dt_gpu_nccl *nccl, dt_stream_t stream,
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
    return rc == DT_SUCCESS ? sign(nccl, stream, err) : rc;
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
        if (since(&start) > seconds)
            return false;
        sleep_for(POLL);
    }
    return true;
}

static void end_well(struct dt_gpu_nccl *nccl)
{
    struct timespec start;
    int code = nccl->api.ncclCommFinalize(nccl->comm);
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (code == DT_NCCL_IN_PROGRESS && !nccl->aborted &&
           since(&start) < (double)nccl->world->timeout) {
        sleep_for(POLL);
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

static bool finish(struct dt_gpu_nccl *nccl)
{
    struct timespec start;
    if (nccl->world->failure != DT_SUCCESS)
        nccl->aborted = true;
    const double patience = nccl->aborted ? 0 : (double)nccl->world->timeout;
    begin_end(nccl);
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (nccl->state != DT_NCCL_ENDED) {
        double seconds = since(&start);
        if (seconds > patience + ABORTED)
            return false; /* its thread still has it */
        sleep_for(POLL);
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
        finish(nccl);
}

/* ---- opening ---- */

/* How long a rank looks at NCCL before it looks at the others, seconds. */
#define OPEN_ROUND 5e-3
#define OPEN_POLL  200e-6

/* What a rank tells of a step. */
struct vote {
    struct dt_gpu_vote base;
    char bus[24];
    int32_t version;
    struct dt_nccl_id id; /* rank 0's */
};

struct opening {
    struct dt_comm *comm;
    struct dt_gpu_nccl *nccl;
    dt_stream_t stream; /* of the test */
    bool signed_off;    /* of the test: the end is on the stream */
    struct vote mine, *all;
};

static const struct dt_shape sum = {.coll = DT_COLL_ALLREDUCE,
                                    .dtype = DT_DTYPE_I32,
                                    .op = DT_OP_SUM,
                                    .count = 1,
                                    .prescale = 1,
                                    .postscale = 1};

/* ---- 1 ---- */

static void find(struct opening *o)
{
    struct dt_gpu_nccl *nccl = o->nccl;
    const struct dt_gpu_ops *ops = nccl->gpu->ops;
    struct dt_error err = {""};
    void *words = NULL;
    dt_result_t rc = dt_nccl_find(&nccl->api, &err);
    o->mine.version = nccl->api.version;
    if (rc == DT_SUCCESS)
        rc = ops->bus(nccl->gpu, nccl->device, o->mine.bus, &err);
    if (rc == DT_SUCCESS)
        rc = ops->host_alloc(nccl->gpu, nccl->device, sizeof(*nccl->words),
                             &words, &err);
    nccl->words = words;
    if (rc == DT_SUCCESS)
        rc = ops->stream_create(nccl->gpu, nccl->device, &o->stream, &err);
    if (rc == DT_SUCCESS && nccl->rank == 0)
        rc = dt_nccl_error(&nccl->api, NULL,
                           nccl->api.ncclGetUniqueId(&o->mine.id), "make an id",
                           &err);
    if (rc != DT_SUCCESS)
        dt_gpu_object(&o->mine.base, &err);
}

static bool same_gpu(const struct opening *o, size_t a, size_t b)
{
    const struct dt_layout *layout = &o->comm->layout;
    return layout->node_of[a] == layout->node_of[b] &&
           !strcmp(o->all[a].bus, o->all[b].bus);
}

/* Every rank comes to the same verdict. */
static bool fit(struct opening *o, char reason[512])
{
    const struct vote *all = o->all;
    for (size_t r = 0; r < o->comm->size; r++) {
        o->all[r].bus[sizeof(o->all[r].bus) - 1] = '\0';
        if (all[r].version != all[0].version) {
            snprintf(reason, 512,
                     "NCCL: rank 0 has version code %d, rank %zu %d: install "
                     "the same on all nodes",
                     all[0].version, r, all[r].version);
            return false;
        }
        for (size_t s = 0; s < r; s++)
            if (same_gpu(o, s, r)) {
                snprintf(reason, 512,
                         "NCCL: ranks %zu and %zu have the same GPU, %s: give "
                         "each rank its own",
                         s, r, all[r].bus);
                return false;
            }
    }
    return true;
}

/* ---- in step ---- */

enum progress { FAILED = -1, GOING = 0, DONE = 1 };

static enum progress said(struct opening *o, int code, const char *doing)
{
    struct dt_gpu_nccl *nccl = o->nccl;
    struct dt_error err;
    if (code == DT_NCCL_IN_PROGRESS)
        return GOING;
    if (dt_nccl_error(&nccl->api, nccl->comm, code, doing, &err) == DT_SUCCESS)
        return DONE;
    dt_gpu_object(&o->mine.base, &err);
    return FAILED;
}

static enum progress look_for(struct opening *o,
                              enum progress (*look)(struct opening *),
                              const struct timespec *start)
{
    struct timespec began;
    struct dt_error err;
    enum progress mine = o->mine.base.why[0] ? FAILED : look(o);
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (mine == GOING && since(&began) < OPEN_ROUND) {
        sleep_for(OPEN_POLL);
        mine = look(o);
    }
    if (mine != GOING || since(start) <= (double)o->nccl->world->timeout)
        return mine;
    dt_error_set(&err, DT_ERR_TIMED_OUT,
                 "NCCL: it has not connected the ranks within %ld s: "
                 "NCCL_DEBUG=INFO tells more",
                 o->nccl->world->timeout);
    dt_gpu_object(&o->mine.base, &err);
    return FAILED;
}

/* Until all are done, or one has failed. */
static dt_result_t together(struct opening *o,
                            enum progress (*look)(struct opening *),
                            struct dt_error *err)
{
    struct dt_shape shape = sum;
    struct timespec start;
    int32_t mine, least = GOING;
    dt_result_t rc = DT_SUCCESS;
    shape.op = DT_OP_MIN;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (rc == DT_SUCCESS && least == GOING) {
        mine = look_for(o, look, &start);
        rc = dt_comm_run(o->comm, &shape, &mine, &least, err);
    }
    return rc;
}

/* ---- 2 ---- */

static enum progress begun(struct opening *o)
{
    return said(o, dt_nccl_poll(o->nccl), "begin");
}

static dt_result_t begin_comm(struct opening *o, struct dt_error *err)
{
    struct dt_gpu_nccl *nccl = o->nccl;
    struct dt_nccl_config config = {.size = sizeof(config),
                                    .magic = DT_NCCL_MAGIC,
                                    .version = DT_NCCL_VERSION,
                                    .blocking = 0};
    struct dt_error why;
    struct dt_gpu_scope scope;
    if (nccl->gpu->ops->enter(nccl->gpu, nccl->device, &scope, &why) !=
        DT_SUCCESS) {
        dt_gpu_object(&o->mine.base, &why);
    } else {
        int code = nccl->api.ncclCommInitRankConfig(
            &nccl->comm, (int)nccl->size, o->all[0].id, (int)nccl->rank,
            &config);
        nccl->gpu->ops->leave(nccl->gpu, &scope);
        said(o, code, "begin");
    }
    return together(o, begun, err);
}

/* ---- 3 ---- */

static enum progress added(struct opening *o)
{
    struct dt_gpu_nccl *nccl = o->nccl;
    struct dt_error err;
    enum progress handed = said(o, dt_nccl_poll(nccl), "add numbers");
    if (handed == DONE && !o->signed_off) {
        if (sign(nccl, o->stream, &err) != DT_SUCCESS) {
            dt_gpu_object(&o->mine.base, &err);
            return FAILED;
        }
        o->signed_off = true;
    }
    if (handed == DONE && !dt_gpu_nccl_done(nccl, nccl->last))
        return GOING;
    return handed;
}

static dt_result_t add(struct opening *o, struct dt_error *err)
{
    struct dt_gpu_nccl *nccl = o->nccl;
    const int32_t n = (int32_t)nccl->size;
    int32_t *added_up = nccl->words->added;
    struct dt_gpu_scope scope;
    struct dt_error why;
    added_up[0] = (int32_t)nccl->rank + 1;
    if (nccl->gpu->ops->enter(nccl->gpu, nccl->device, &scope, &why) !=
        DT_SUCCESS) {
        dt_gpu_object(&o->mine.base, &why);
    } else {
        int code =
            dt_nccl_put(nccl, &sum, &added_up[0], &added_up[1], o->stream);
        nccl->gpu->ops->leave(nccl->gpu, &scope);
        said(o, code, "add numbers");
    }
    dt_result_t rc = together(o, added, err);
    if (rc == DT_SUCCESS && !o->mine.base.why[0] &&
        dt_gpu_nccl_done(nccl, nccl->last) && added_up[1] != n * (n + 1) / 2) {
        dt_error_set(&why, DT_ERR_UNSUPPORTED,
                     "NCCL: it adds 1 to %d and gets %d: NCCL_DEBUG=INFO tells "
                     "more",
                     n, added_up[1]);
        dt_gpu_object(&o->mine.base, &why);
    }
    return rc;
}

/* ---- all ---- */

static dt_result_t make(struct opening *o, struct dt_gpu *gpu, int device,
                        struct dt_error *err)
{
    struct dt_comm *comm = o->comm;
    struct dt_gpu_nccl *nccl = calloc(1, sizeof(*nccl));
    o->all = calloc(comm->size, sizeof(*o->all));
    if (!nccl || !o->all) {
        free(nccl);
        free(o->all);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ranks",
                            comm->size);
    }
    pthread_mutex_init(&nccl->lock, NULL);
    nccl->world = comm->world;
    nccl->gpu = gpu;
    nccl->device = device;
    nccl->rank = comm->rank;
    nccl->size = comm->size;
    o->nccl = nccl;
    return DT_SUCCESS;
}

static dt_result_t open_steps(struct opening *o, bool *yes, char reason[512],
                              struct dt_error *err)
{
    static dt_result_t (*const steps[])(struct opening *,
                                        struct dt_error *) = {begin_comm, add};
    find(o);
    dt_result_t rc = dt_gpu_vote(o->comm, &o->mine.base, o->all,
                                 sizeof(o->mine), yes, reason, err);
    *yes = rc == DT_SUCCESS && *yes && fit(o, reason);
    for (size_t i = 0; i < 2 && rc == DT_SUCCESS && *yes; i++) {
        rc = steps[i](o, err);
        if (rc == DT_SUCCESS)
            rc = dt_gpu_vote(o->comm, &o->mine.base, o->all, sizeof(o->mine),
                             yes, reason, err);
    }
    return rc;
}

dt_result_t dt_gpu_nccl_open(struct dt_comm *comm, struct dt_gpu *gpu,
                             int device, struct dt_gpu_nccl **nccl,
                             char reason[512], struct dt_error *err)
{
    struct opening o = {.comm = comm};
    bool yes = false;
    *nccl = NULL;
    dt_result_t rc = make(&o, gpu, device, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = open_steps(&o, &yes, reason, err);
    bool good = rc == DT_SUCCESS && yes, ended = true;
    if (!good) {
        dt_gpu_nccl_abort(o.nccl);
        ended = finish(o.nccl);
    }
    if (o.stream && ended)
        gpu->ops->stream_destroy(gpu, o.stream);
    if (good)
        *nccl = o.nccl;
    free(o.all);
    return rc;
}
