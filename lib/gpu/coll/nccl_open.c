/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_open.c - can NCCL serve these ranks?
 *
 * Three steps, and after each the ranks tell each other how it went, so that
 * all of them come to the same answer:
 *
 *   1. find NCCL, name the GPU; rank 0 makes an id
 *   2. begin a communicator of that id
 *   3. add some numbers
 *
 * In steps 2 and 3 each rank waits for all others, so they look in step whether
 * one has failed, or time is over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/coll/nccl_part.h"
#include "gpu/coll/vote.h"

/* How long a rank looks at NCCL before it looks at the others, seconds. */
#define LOOK 5e-3
#define NAP  200e-6

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

enum look { FAILED = -1, GOING = 0, DONE = 1 };

static enum look said(struct opening *o, int code, const char *doing)
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

static enum look look_for(struct opening *o,
                          enum look (*look)(struct opening *),
                          const struct timespec *start)
{
    struct timespec began;
    struct dt_error err;
    enum look mine = o->mine.base.why[0] ? FAILED : look(o);
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (mine == GOING && dt_nccl_since(&began) < LOOK) {
        dt_nccl_nap(NAP);
        mine = look(o);
    }
    if (mine != GOING ||
        dt_nccl_since(start) <= (double)o->nccl->world->timeout)
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
                            enum look (*look)(struct opening *),
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

static enum look begun(struct opening *o)
{
    return said(o, dt_nccl_poll(o->nccl), "begin");
}

static dt_result_t begin(struct opening *o, struct dt_error *err)
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

static enum look added(struct opening *o)
{
    struct dt_gpu_nccl *nccl = o->nccl;
    struct dt_error err;
    enum look handed = said(o, dt_nccl_poll(nccl), "add numbers");
    if (handed == DONE && !o->signed_off) {
        if (dt_nccl_sign(nccl, o->stream, &err) != DT_SUCCESS) {
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

static dt_result_t run(struct opening *o, bool *yes, char reason[512],
                       struct dt_error *err)
{
    static dt_result_t (*const steps[])(struct opening *,
                                        struct dt_error *) = {begin, add};
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
    rc = run(&o, &yes, reason, err);
    bool good = rc == DT_SUCCESS && yes, ended = true;
    if (!good) {
        dt_gpu_nccl_abort(o.nccl);
        ended = dt_nccl_end(o.nccl);
    }
    if (o.stream && ended)
        gpu->ops->stream_destroy(gpu, o.stream);
    if (good)
        *nccl = o.nccl;
    free(o.all);
    return rc;
}
