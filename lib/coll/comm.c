/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* comm.c - the life of collectives on a communicator.
 *
 *   idle --start--> active --complete--> idle again, for the same shape
 *                          --failed----> destroyed, and all others with it
 */
#include "coll/comm.h"

#include <stdlib.h>

#include "base/env.h"
#include "coll/backoff.h"

/* Enough for every shape of a training step; beyond it, plans are built anew.
 */
#define MAX_IDLE 64

/* After so many tests in vain, look whether the peers are alive. */
#define LOOK_POLLS 1024

dt_result_t dt_comm_open(struct dt_world *world, struct dt_comm **out,
                         struct dt_error *err)
{
    struct dt_comm *comm = calloc(1, sizeof(*comm));
    if (!comm)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a communicator");
    comm->world = world;
    comm->rank = world->rank;
    comm->size = world->size;
    *out = comm;
    return DT_SUCCESS;
}

static void destroy_all(struct dt_request *request)
{
    while (request) {
        struct dt_request *next = request->next;
        dt_request_destroy(request);
        request = next;
    }
}

void dt_comm_close(struct dt_comm *comm)
{
    if (!comm)
        return;
    destroy_all(comm->active);
    destroy_all(comm->idle);
    free(comm);
}

static bool same_shape(const struct dt_shape *a, const struct dt_shape *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op &&
           a->count == b->count && a->root == b->root &&
           a->in_place == b->in_place;
}

/* Take a request of that shape off the idle list, or NULL. */
static struct dt_request *take_idle(struct dt_comm *comm,
                                    const struct dt_shape *shape)
{
    struct dt_request **at = &comm->idle;
    while (*at && !same_shape(&(*at)->shape, shape))
        at = &(*at)->next;
    struct dt_request *request = *at;
    if (request) {
        *at = request->next;
        comm->nidle--;
    }
    return request;
}

/* Newest first; the one that was not used for longest goes. */
static void put_idle(struct dt_comm *comm, struct dt_request *request)
{
    request->next = comm->idle;
    comm->idle = request;
    if (++comm->nidle <= MAX_IDLE)
        return;
    struct dt_request **last = &comm->idle;
    while ((*last)->next)
        last = &(*last)->next;
    dt_request_destroy(*last);
    *last = NULL;
    comm->nidle--;
}

dt_result_t dt_comm_failure(const struct dt_comm *comm, struct dt_error *err)
{
    if (err && comm->world->failure != DT_SUCCESS)
        *err = comm->world->failure_text;
    return comm->world->failure;
}

bool dt_comm_progress(struct dt_comm *comm)
{
    bool moved = false;
    for (size_t i = 0; i < DT_CARD_TLS; i++) {
        struct dt_tl *tl = comm->world->tl[i];
        if (tl)
            moved |= tl->ops->progress(tl);
    }
    for (struct dt_request *r = comm->active; r; r = r->next)
        moved |= dt_request_progress(r);
    return moved;
}

/* Ask the transports whether a peer is gone; fail the world if so. */
static void check_peers(struct dt_comm *comm)
{
    struct dt_error err = {""};
    for (size_t i = 0; i < DT_CARD_TLS; i++) {
        struct dt_tl *tl = comm->world->tl[i];
        dt_result_t rc = tl ? tl->ops->check(tl, &err) : DT_SUCCESS;
        if (rc == DT_SUCCESS)
            continue;
        dt_world_listen(comm->world, DT_BOOT_PATIENCE);
        dt_world_fail(comm->world, rc, &err);
    }
}

/* Progress until request is over. */
static void await(struct dt_comm *comm, const struct dt_request *request)
{
    struct dt_world *world = comm->world;
    struct dt_backoff backoff;
    uint64_t steps = comm->steps;
    dt_backoff_init(&backoff, world->nodes[world->node].size);
    while (request->status == DT_IN_PROGRESS) {
        bool moved = dt_comm_progress(comm);
        /* a transport's keepalive moves something, but not us */
        if (comm->steps != steps)
            dt_backoff_restart(&backoff);
        steps = comm->steps;
        if (moved) {
            dt_backoff_reset(&backoff);
            continue;
        }
        dt_world_listen(world, 0);
        if (!dt_backoff_wait(&backoff))
            continue;
        check_peers(comm);
        if (dt_backoff_seconds(&backoff) < world->timeout)
            continue;
        struct dt_error late;
        dt_error_set(&late, DT_ERR_TIMED_OUT,
                     "nothing arrived for %ld s (" DT_ENV_TIMEOUT "): a rank "
                     "is stopped, or did not call the same collective",
                     world->timeout);
        dt_world_fail(world, DT_ERR_TIMED_OUT, &late);
    }
}

/* A tag may be used again when the operation that had it is over here:
 * messages of one peer and tag keep their order. */
static void free_tag(struct dt_comm *comm, uint64_t tag)
{
    struct dt_request *r = comm->active;
    while (r && (r->tag != tag || r->status != DT_IN_PROGRESS))
        r = r->next;
    if (r)
        await(comm, r);
}

dt_result_t dt_comm_start(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **out, struct dt_error *err)
{
    if (comm->world->failure != DT_SUCCESS)
        return dt_comm_failure(comm, err);
    struct dt_request *request = take_idle(comm, shape);
    if (!request) {
        dt_result_t rc = dt_request_create(comm, shape, &request, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    uint32_t sequence = comm->sequence++ & ((1u << DT_TAG_SEQ_BITS) - 1);
    request->tag = (uint64_t)comm->id << DT_TAG_COMM_SHIFT |
                   (uint64_t)sequence << DT_TAG_SLOT_BITS;
    free_tag(comm, request->tag);
    dt_request_begin(request, sendbuf, recvbuf);
    request->next = comm->active;
    comm->active = request;
    dt_request_progress(request);
    *out = request;
    return DT_SUCCESS;
}

/* A request is over: out of the active list, and what its end means. */
static dt_result_t retire(struct dt_comm *comm, struct dt_request *request,
                          struct dt_error *err)
{
    struct dt_request **at = &comm->active;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (request->status == DT_SUCCESS) {
        if (request->shape.coll == DT_COLL_ALLREDUCE && request->note)
            comm->leave = true;
        put_idle(comm, request);
        return DT_SUCCESS;
    }
    check_peers(comm); /* the transport knows who it was */
    dt_world_fail(comm->world, request->status, NULL);
    dt_request_destroy(request);
    return dt_comm_failure(comm, err);
}

dt_result_t dt_comm_test(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err)
{
    if (request->status == DT_IN_PROGRESS && !dt_comm_progress(comm)) {
        dt_world_listen(comm->world, 0);
        if (++comm->polls % LOOK_POLLS == 0)
            check_peers(comm);
    }
    if (request->status == DT_IN_PROGRESS)
        return DT_IN_PROGRESS;
    return retire(comm, request, err);
}

dt_result_t dt_comm_wait(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err)
{
    await(comm, request);
    return retire(comm, request, err);
}
