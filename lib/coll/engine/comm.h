/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* comm.h - a communicator and the collectives running on it. */
#ifndef DT_COLL_ENGINE_COMM_H
#define DT_COLL_ENGINE_COMM_H

#include "coll/engine/request.h"
#include "coll/engine/world.h"

struct dt_comm {
    struct dt_world *world;
    size_t rank, size;
    size_t *members;         /* ranks in the world */
    struct dt_layout layout; /* in ranks of this communicator */
    struct dt_board
        *board; /* of its ranks on this node; NULL: there is no other */
    uint32_t id, sequence;
    uint64_t round;    /* the next free one */
    uint64_t released; /* this rank has released the rounds below it */
    /* in the order in which they were started, which is that of their rounds */
    struct dt_request *active, **last;
    struct dt_request
        *idle; /* complete, kept for the next collective of the same shape */
    size_t nidle;
    unsigned polls;   /* tests so far */
    uint64_t steps;   /* operations done so far */
    int32_t token[2]; /* a barrier sums the first into the second */
    void *device;     /* the part of device.h; NULL: no such call so far */
    /* the notice bit of the last allreduce; any thread may read it */
    _Atomic bool leave;
};

/* Make a communicator of size ranks of the world, in this order (NULL: as they
 * are); id is free on all of them, serial is higher than any before and equal
 * on all. Local: no message is sent. members are copied. Takes the lock.
 * DT_IN_PROGRESS: another thread has taken the id, or a higher serial,
 * meanwhile. Errors: NO_MEMORY, SYSTEM. */
dt_result_t dt_comm_open(struct dt_world *world, const size_t *members,
                         size_t size, uint32_t id, uint64_t serial,
                         struct dt_comm **comm, struct dt_error *err);

/* Make a communicator of DT_COMM_CREATE, on which some ranks of the world, in
 * rising order, agree about another one. It has messages alone and no board, so
 * nothing has to be agreed upon to make it. Blocks while another thread of this
 * rank has one. Error: NO_MEMORY. */
dt_result_t dt_comm_open_plain(struct dt_world *world, const size_t *members,
                               size_t size, struct dt_comm **comm,
                               struct dt_error *err);
void dt_comm_close_plain(struct dt_comm *comm);

/* Nothing may be running on it, unless the world has failed. NULL is fine.
 * Takes the lock. */
void dt_comm_close(struct dt_comm *comm);

/* SUCCESS, or why nothing works on it any more. */
dt_result_t dt_comm_failure(const struct dt_comm *comm, struct dt_error *err);

/* Start a collective of a valid shape, in which some rank has elements, with an
 * idle request of that shape or a new one. Blocks only while the collective
 * that was started 4096 ones before is still in progress, as it has the same
 * tag. Start, wait and test take the lock. Errors: NO_MEMORY, and those of
 * dt_comm_failure. */
dt_result_t dt_comm_start(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **request, struct dt_error *err);

/* Make progress until the request is complete, a rank has failed, or nothing
 * has arrived for world->timeout seconds. Returns its status, and makes it
 * idle. */
dt_result_t dt_comm_wait(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err);

/* The same if it is complete; else DT_IN_PROGRESS. Never blocks. */
dt_result_t dt_comm_test(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err);

/* Start and wait. An allreduce inside the node takes its shortest way. */
dt_result_t dt_comm_run(struct dt_comm *comm, const struct dt_shape *shape,
                        const void *sendbuf, void *recvbuf,
                        struct dt_error *err);

/* With the lock held: dt_comm_start; and what dt_comm_wait does with a request
 * whose status is no longer DT_IN_PROGRESS. */
dt_result_t dt_comm_begin(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **request, struct dt_error *err);
dt_result_t dt_comm_retire(struct dt_comm *comm, struct dt_request *request,
                           struct dt_error *err);

/* With the lock held: run the operations of its requests that can run, and tell
 * the board which rounds this rank has finished with. True if anything moved.
 */
bool dt_comm_progress(struct dt_comm *comm);

/* The same for the board alone. */
bool dt_comm_release(struct dt_comm *comm);

/* A barrier of libdt's own, in no group. */
dt_result_t dt_comm_barrier(struct dt_comm *comm, struct dt_error *err);

/* The last barrier, after which comm may be closed. Blocks, too, until the
 * other ranks of this node have released all rounds. Errors: those of
 * dt_comm_run. */
dt_result_t dt_comm_leave(struct dt_comm *comm, struct dt_error *err);

#endif
