/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* comm.c - the life of collectives on a communicator.
 *
 *   idle --start--> active --complete--> idle again, for the same shape
 *                          --failed----> destroyed, and all others with it
 */
#include "coll/engine/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "coll/engine/idle.h"
#include "coll/engine/progress.h"

/* Enough for every shape of a training step; beyond it, plans are built anew.
 */
#define MAX_IDLE 64

/* After so many tests, look whether the peers are alive. */
#define LOOK_POLLS 1024

/* Ranks of this communicator on my node, as ranks of the world. */
static dt_result_t open_board(struct dt_comm *comm, uint64_t serial,
                              struct dt_error *err)
{
    struct dt_tl *tl = dt_world_node_tl(comm->world);
    const struct dt_group *node = dt_layout_node(&comm->layout);
    if (node->size == 1 || !tl)
        return DT_SUCCESS;
    size_t *ranks = calloc(node->size, sizeof(*ranks));
    if (!ranks)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a communicator");
    for (size_t i = 0; i < node->size; i++)
        ranks[i] = comm->members[node->ranks[i]];
    const struct dt_board_config config = {.id = comm->id,
                                           .serial = serial,
                                           .ranks = ranks,
                                           .size = node->size,
                                           .index = node->index};
    dt_result_t rc = tl->boards->open(tl, &config, &comm->board, err);
    free(ranks);
    return rc;
}

/* What fits on the board of every node. */
static size_t piece_max(const struct dt_comm *comm)
{
    size_t most = 0;
    for (size_t n = 0; n < comm->layout.nnodes; n++)
        if (comm->layout.nodes[n].size > most)
            most = comm->layout.nodes[n].size;
    return most > 1 ? dt_board_piece_max(most) : 0;
}

static dt_result_t fill(struct dt_comm *comm, const size_t *members,
                        struct dt_error *err)
{
    const struct dt_world *world = comm->world;
    size_t *node_of = calloc(comm->size, sizeof(*node_of));
    comm->members = calloc(comm->size, sizeof(*comm->members));
    if (!node_of || !comm->members) {
        free(node_of);
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a communicator");
    }
    for (size_t i = 0; i < comm->size; i++) {
        comm->members[i] = members ? members[i] : i;
        node_of[i] = world->layout.node_of[comm->members[i]];
        if (comm->members[i] == world->rank)
            comm->rank = i;
    }
    dt_result_t rc =
        dt_layout_init(&comm->layout, comm->rank, comm->size, node_of, err);
    free(node_of);
    return rc;
}

static void destroy_all(struct dt_request *request)
{
    while (request) {
        struct dt_request *next = request->next;
        dt_request_destroy(request);
        request = next;
    }
}

static void free_comm(struct dt_comm *comm)
{
    destroy_all(comm->active);
    destroy_all(comm->idle);
    dt_layout_fini(&comm->layout);
    free(comm->members);
    free(comm);
}

dt_result_t dt_comm_open(struct dt_world *world, const size_t *members,
                         size_t size, uint32_t id, uint64_t serial,
                         struct dt_comm **out, struct dt_error *err)
{
    struct dt_comm *comm = calloc(1, sizeof(*comm));
    if (!comm)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a communicator");
    comm->world = world;
    comm->size = size;
    comm->id = id;
    comm->last = &comm->active;
    dt_result_t rc = fill(comm, members, err);
    if (rc != DT_SUCCESS)
        goto free_comm;
    comm->layout.piece_max = piece_max(comm);
    dt_world_lock(world);
    rc = world->comms[id] || serial <= world->serial
             ? DT_IN_PROGRESS
             : open_board(comm, serial, err);
    if (rc == DT_SUCCESS) {
        world->comms[id] = comm;
        if (id >= world->ncomms)
            world->ncomms = id + 1;
        world->serial = serial;
    }
    dt_world_unlock(world);
    if (rc != DT_SUCCESS)
        goto free_comm;
    *out = comm;
    return DT_SUCCESS;

free_comm:
    free_comm(comm);
    return rc;
}

void dt_comm_detach(struct dt_comm *comm)
{
    for (struct dt_request *r = comm->active; r; r = r->next)
        if (r->is_local)
            dt_local_drop(&r->local);
    if (comm->board)
        comm->board->ops->close(comm->board);
    comm->board = NULL;
}

void dt_comm_close(struct dt_comm *comm)
{
    if (!comm)
        return;
    dt_world_lock(comm->world);
    comm->world->comms[comm->id] = NULL;
    dt_comm_detach(comm);
    dt_world_unlock(comm->world);
    free_comm(comm);
}

static bool same_shape(const struct dt_shape *a, const struct dt_shape *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op &&
           a->count == b->count && a->root == b->root &&
           a->in_place == b->in_place && a->prescale == b->prescale &&
           a->postscale == b->postscale;
}

/* Are its counts its own? The plan is then of use only once. */
static bool is_uneven(const struct dt_shape *shape)
{
    return shape->sendcounts || shape->recvcounts;
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
    if (is_uneven(&request->shape)) {
        dt_request_destroy(request);
        return;
    }
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
    dt_result_t failure = comm->world->failure;
    if (err && failure != DT_SUCCESS)
        *err = comm->world->failure_text;
    return failure;
}

/* Tell the board which rounds this rank is through with: those of all
 * operations up to the first one that has some left. True: there were more. */
static bool pass(struct dt_comm *comm)
{
    uint64_t through = comm->active ? comm->active->round : comm->round;
    for (const struct dt_request *r = comm->active; r; r = r->next) {
        through = r->round + r->passed;
        if (r->passed < r->rounds)
            break;
        through = r->next ? r->next->round : comm->round;
    }
    if (through == comm->through)
        return false;
    comm->through = through;
    comm->board->ops->release(comm->board, through);
    return true;
}

static bool progress_all(struct dt_comm *comm)
{
    bool moved = false;
    for (struct dt_request *r = comm->active; r; r = r->next) {
        if (comm->world->failure != DT_SUCCESS && r->status == DT_IN_PROGRESS)
            r->status = comm->world->failure;
        moved |= dt_request_progress(r);
    }
    return moved;
}

bool dt_comm_progress(struct dt_comm *comm)
{
    if (!comm->active)
        return false; /* it may be on its shortest way, in another thread */
    bool moved = progress_all(comm);
    /* passing may have been all that an operation still had to do */
    while (comm->board && pass(comm))
        moved |= progress_all(comm);
    return moved;
}

/* ---- waiting ---- */

/* Progress until request is over; the lock is held. */
static void await(struct dt_comm *comm, const struct dt_request *request)
{
    struct dt_world *world = comm->world;
    struct dt_backoff backoff;
    uint64_t steps = comm->steps;
    dt_backoff_init(&backoff,
                    comm->layout.nnodes > 1 ? world->far_spins : world->spins,
                    dt_world_sleeper(world));
    while (request->status == DT_IN_PROGRESS) {
        /* a transport's keepalive moves something, too, but not us */
        bool others = dt_world_progress(world);
        if (comm->steps != steps) {
            dt_backoff_restart(&backoff);
            dt_world_let_in(world);
        } else if (request->status == DT_IN_PROGRESS) {
            dt_idle(&backoff, world, others);
        }
        steps = comm->steps;
    }
}

/* ---- life ---- */

static bool is_p2p(const struct dt_shape *shape)
{
    return shape->coll == DT_COLL_SEND || shape->coll == DT_COLL_RECV;
}

/* A tag may be used again when the operation that had it is over here:
 * messages of one peer and tag keep their order. Those of dt_send and dt_recv
 * have a slot of their own. */
static void free_tag(struct dt_comm *comm, uint64_t tag)
{
    struct dt_request *r = comm->active;
    while (r &&
           (r->tag != tag || is_p2p(&r->shape) || r->status != DT_IN_PROGRESS))
        r = r->next;
    if (r)
        await(comm, r);
}

/* Give the operation its tag and its rounds. */
static void number(struct dt_comm *comm, struct dt_request *request)
{
    request->tag = (uint64_t)comm->id << DT_TAG_COMM_SHIFT;
    request->round = comm->round;
    if (is_p2p(&request->shape))
        return;
    uint32_t sequence = comm->sequence++ & ((1u << DT_TAG_SEQ_BITS) - 1);
    request->tag |= (uint64_t)sequence << DT_TAG_SLOT_BITS;
    free_tag(comm, request->tag);
    comm->round += request->rounds;
}

static void enlist(struct dt_comm *comm, struct dt_request *request)
{
    request->next = NULL;
    *comm->last = request;
    comm->last = &request->next;
}

static void delist(struct dt_comm *comm, struct dt_request *request)
{
    struct dt_request **at = &comm->active;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (comm->last == &request->next)
        comm->last = at;
}

dt_result_t dt_comm_begin(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **out, struct dt_error *err)
{
    if (comm->world->failure != DT_SUCCESS)
        return dt_comm_failure(comm, err);
    struct dt_request *request =
        is_uneven(shape) ? NULL : take_idle(comm, shape);
    if (!request) {
        dt_result_t rc = dt_request_create(comm, shape, &request, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    number(comm, request);
    dt_request_begin(request, sendbuf, recvbuf);
    enlist(comm, request);
    dt_request_progress(request);
    dt_progress_wake(comm->world->progress);
    *out = request;
    return DT_SUCCESS;
}

dt_result_t dt_comm_start(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **out, struct dt_error *err)
{
    dt_world_lock(comm->world);
    dt_result_t rc = dt_comm_begin(comm, shape, sendbuf, recvbuf, out, err);
    dt_world_unlock(comm->world);
    return rc;
}

/* A request is over: out of the active list, and what its end means. */
dt_result_t dt_comm_retire(struct dt_comm *comm, struct dt_request *request,
                           struct dt_error *err)
{
    delist(comm, request);
    if (request->status == DT_SUCCESS && comm->board)
        pass(comm);
    if (request->status == DT_SUCCESS) {
        if (request->shape.coll == DT_COLL_ALLREDUCE && request->note)
            comm->leave = true;
        put_idle(comm, request);
        return DT_SUCCESS;
    }
    if (request->is_local)
        dt_local_drop(&request->local);
    dt_world_check(comm->world); /* the transport knows who it was */
    dt_world_fail(comm->world, request->status, NULL);
    dt_request_destroy(request);
    return dt_comm_failure(comm, err);
}

dt_result_t dt_comm_test(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err)
{
    dt_result_t rc = DT_IN_PROGRESS;
    dt_world_lock(comm->world);
    if (request->status == DT_IN_PROGRESS) {
        dt_world_progress(comm->world);
        dt_world_listen(comm->world, 0);
        if (++comm->polls % LOOK_POLLS == 0)
            dt_world_check(comm->world);
    }
    if (request->status != DT_IN_PROGRESS)
        rc = dt_comm_retire(comm, request, err);
    dt_world_unlock(comm->world);
    return rc;
}

dt_result_t dt_comm_wait(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err)
{
    dt_world_lock(comm->world);
    await(comm, request);
    dt_result_t rc = dt_comm_retire(comm, request, err);
    dt_world_unlock(comm->world);
    return rc;
}
