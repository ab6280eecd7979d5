/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* comm.c - making and closing a communicator, and progress of its requests. */
#include "coll/engine/comm.h"

#include <stdlib.h>
#include <string.h>

/* The board is of the ranks of this communicator on this node. */
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

/* The longest piece that the boards of all nodes take. */
static size_t piece_max(const struct dt_comm *comm)
{
    size_t most = 0;
    for (size_t n = 0; n < comm->layout.nnodes; n++)
        if (comm->layout.nodes[n].size > most)
            most = comm->layout.nodes[n].size;
    return most > 1 ? dt_board_piece_max(most) : 0;
}

/* apart: as if each rank were alone on its node. */
static dt_result_t fill(struct dt_comm *comm, const size_t *members, bool apart,
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
        node_of[i] = apart ? i : world->layout.node_of[comm->members[i]];
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

static void detach(struct dt_comm *comm)
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
    detach(comm);
    dt_world_unlock(comm->world);
    free_comm(comm);
}

dt_result_t dt_comm_failure(const struct dt_comm *comm, struct dt_error *err)
{
    dt_result_t failure = comm->world->failure;
    if (err && failure != DT_SUCCESS)
        *err = comm->world->failure_text;
    return failure;
}

/* The rounds of all requests are finished up to the first request that has some
 * left. */
bool dt_comm_release(struct dt_comm *comm)
{
    uint64_t released = comm->active ? comm->active->round : comm->round;
    for (const struct dt_request *r = comm->active; r; r = r->next) {
        released = r->round + r->released;
        if (r->released < r->rounds)
            break;
        released = r->next ? r->next->round : comm->round;
    }
    if (released == comm->released)
        return false;
    comm->released = released;
    comm->board->ops->release(comm->board, released);
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
        return false; /* another thread may run an allreduce without the lock */
    bool moved = progress_all(comm);
    /* a request may have waited for nothing but the release */
    while (comm->board && dt_comm_release(comm))
        moved |= progress_all(comm);
    return moved;
}

static bool is_active(const struct dt_comm *comm)
{
    const struct dt_request *r = comm->active;
    while (r && r->status != DT_IN_PROGRESS)
        r = r->next;
    return r;
}

static const struct dt_comm_ops ops = {
    .progress = dt_comm_progress,
    .active = is_active,
    .detach = detach,
    .close = dt_comm_close,
};

static dt_result_t create(struct dt_world *world, const size_t *members,
                          size_t size, uint32_t id, struct dt_comm **out,
                          struct dt_error *err)
{
    struct dt_comm *comm = calloc(1, sizeof(*comm));
    if (!comm)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a communicator");
    comm->world = world;
    comm->size = size;
    comm->id = id;
    comm->last = &comm->active;
    dt_result_t rc = fill(comm, members, id == DT_COMM_CREATE, err);
    if (rc != DT_SUCCESS) {
        free_comm(comm);
        return rc;
    }
    comm->layout.piece_max = piece_max(comm);
    *out = comm;
    return DT_SUCCESS;
}

/* With the lock held. */
static void enter(struct dt_comm *comm)
{
    struct dt_world *world = comm->world;
    world->comms[comm->id] = comm;
    world->comm_ops = &ops;
    if (comm->id >= world->ncomms)
        world->ncomms = comm->id + 1;
}

dt_result_t dt_comm_open(struct dt_world *world, const size_t *members,
                         size_t size, uint32_t id, uint64_t serial,
                         struct dt_comm **out, struct dt_error *err)
{
    struct dt_comm *comm;
    dt_result_t rc = create(world, members, size, id, &comm, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_world_lock(world);
    rc = world->comms[id] || serial <= world->serial
             ? DT_IN_PROGRESS
             : open_board(comm, serial, err);
    if (rc == DT_SUCCESS) {
        enter(comm);
        world->serial = serial;
    }
    dt_world_unlock(world);
    if (rc != DT_SUCCESS)
        free_comm(comm);
    else
        *out = comm;
    return rc;
}

dt_result_t dt_comm_open_plain(struct dt_world *world, const size_t *members,
                               size_t size, struct dt_comm **out,
                               struct dt_error *err)
{
    dt_result_t rc = create(world, members, size, DT_COMM_CREATE, out, err);
    if (rc != DT_SUCCESS)
        return rc;
    pthread_mutex_lock(&world->create);
    dt_world_lock(world);
    enter(*out);
    dt_world_unlock(world);
    return DT_SUCCESS;
}

void dt_comm_close_plain(struct dt_comm *comm)
{
    struct dt_world *world = comm->world;
    dt_comm_close(comm);
    pthread_mutex_unlock(&world->create);
}
