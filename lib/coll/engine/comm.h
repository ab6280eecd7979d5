/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* comm.h - a communicator and the collectives running on it. */
#ifndef DT_COLL_ENGINE_COMM_H
#define DT_COLL_ENGINE_COMM_H

#include "coll/node/local.h"
#include "coll/engine/sched.h"
#include "coll/engine/shape.h"
#include "coll/engine/world.h"

/* What collectives put into a message tag, below what tl.h reserves:
 *
 *   bits  0..19  slot: the k-th message between two ranks of an operation;
 *                all ones: dt_send and dt_recv, whose sequence number is 0
 *   bits 20..31  sequence number of the operation
 *   bits 32..39  communicator; a new membership is a new communicator
 */
#define DT_TAG_LAYOUT     3
#define DT_TAG_SLOT_BITS  20
#define DT_TAG_SEQ_BITS   12
#define DT_TAG_COMM_SHIFT (DT_TAG_SLOT_BITS + DT_TAG_SEQ_BITS)
#define DT_TAG_P2P        (((uint64_t)1 << DT_TAG_SLOT_BITS) - 1)

/* One collective: a schedule and how far it has come. */
struct dt_request {
    struct dt_comm *comm;
    struct dt_shape shape;
    struct dt_request *next;    /* in the list of active, or of idle ones */
    struct dt_request *grouped; /* the next of its group */

    dt_result_t status;
    uint64_t tag;   /* of the operation: communicator and sequence */
    bool note;      /* some rank that fed this operation has its notice */
    uint64_t round; /* its first */
    uint64_t rounds;
    uint64_t passed; /* of its rounds, from the first on, this rank is through
                      * with */
    bool in_place;   /* something was shown where it is */
    bool on_device;  /* device.h: of all this, it has comm, shape and status */

    /* either this */
    bool is_local;
    struct dt_local local;
    /* or that */
    struct dt_sched plans[2];     /* of all slices but the last; of the last */
    size_t slice, first;          /* elements of a slice; before this one */
    uint64_t base;                /* rounds before this one */
    const struct dt_sched *sched; /* of this one */
    char *space[3];
    size_t left;                           /* tasks not done */
    uint32_t *pending;                     /* per task: dependencies not done */
    struct dt_tl_req *message;             /* per task: sends and receives */
    size_t *ready, ready_head, ready_tail; /* tasks to start, in order */
    size_t *flight, nflight;               /* messages under way */
    size_t *watch, nwatch;                 /* tasks that wait for the board */
    uint32_t *uses;                        /* per round: tasks not done */
    const void **inputs;                   /* of a fold */
};

struct dt_comm {
    struct dt_world *world;
    size_t rank, size;
    size_t *members;         /* ranks in the world */
    struct dt_layout layout; /* in ranks of this communicator */
    struct dt_board *board;  /* of its ranks on this node; NULL: I am alone */
    uint32_t id, sequence;
    uint64_t round;   /* the next one to be given out */
    uint64_t through; /* the board knows that I am through with those below */
    /* in the order of their start, so of their rounds */
    struct dt_request *active, **last;
    struct dt_request *idle; /* finished, kept to be run again */
    size_t nidle;
    unsigned polls;   /* tests so far */
    uint64_t steps;   /* tasks done so far */
    int32_t token[2]; /* what a barrier adds up */
    void *device;     /* the part of device.h; NULL: no such call so far */
    /* the notice, as agreed in the last allreduce; any thread may ask */
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

/* Nothing may be running on it, unless the world has failed. NULL is fine.
 * Takes the lock. */
void dt_comm_close(struct dt_comm *comm);

/* Close its board, before the transport is closed; it moves no more. */
void dt_comm_detach(struct dt_comm *comm);

/* SUCCESS, or why nothing works on it any more. */
dt_result_t dt_comm_failure(const struct dt_comm *comm, struct dt_error *err);

/* Start a collective of a valid shape with count > 0 somewhere: a kept request
 * of that shape, or a new one. Blocks only where one is outstanding from 4096
 * operations ago, until that is over. This, wait and test take the lock for as
 * long as they move something. */
dt_result_t dt_comm_start(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **request, struct dt_error *err);

/* Progress until request is complete, a peer fails or the time is over.
 * Returns its status, and gives it back to comm. */
dt_result_t dt_comm_wait(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err);

/* The same, if it is complete already; else DT_IN_PROGRESS. */
dt_result_t dt_comm_test(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err);

/* start and wait in one, and the shortest way for short ones. */
dt_result_t dt_comm_run(struct dt_comm *comm, const struct dt_shape *shape,
                        const void *sendbuf, void *recvbuf,
                        struct dt_error *err);

/* A communicator of libdt's own, of the same ranks. Collective, blocks. Errors:
 * those of dt_comm_split. */
dt_result_t dt_comm_twin(struct dt_comm *comm, struct dt_comm **twin,
                         struct dt_error *err);

/* With the lock held: dt_comm_start; and what dt_comm_wait does with a request
 * whose status is no longer DT_IN_PROGRESS. */
dt_result_t dt_comm_begin(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **request, struct dt_error *err);
dt_result_t dt_comm_retire(struct dt_comm *comm, struct dt_request *request,
                           struct dt_error *err);

/* The rest is for comm.c, request.c and the simulator, with the lock held. */

/* Run what can run of comm; true if anything moved. */
bool dt_comm_progress(struct dt_comm *comm);

/* Run a request's tasks that can run; true if anything moved. On a failed
 * message its status becomes that failure. */
bool dt_request_progress(struct dt_request *request);

/* A request of that shape, ready to be begun. */
dt_result_t dt_request_create(struct dt_comm *comm,
                              const struct dt_shape *shape,
                              struct dt_request **request,
                              struct dt_error *err);
void dt_request_begin(struct dt_request *request, const void *sendbuf,
                      void *recvbuf);
void dt_request_destroy(struct dt_request *request);

#endif
