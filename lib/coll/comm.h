/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* comm.h - a communicator and the collectives running on it. */
#ifndef DT_COLL_COMM_H
#define DT_COLL_COMM_H

#include "coll/sched.h"
#include "coll/world.h"

/* What collectives put into a message tag, below what tl.h reserves:
 *
 *   bits  0..19  slot: the k-th message between two ranks of an operation
 *   bits 20..31  sequence number of the operation
 *   bits 32..39  communicator; a new membership is a new communicator
 */
#define DT_TAG_LAYOUT     1
#define DT_TAG_SLOT_BITS  20
#define DT_TAG_SEQ_BITS   12
#define DT_TAG_COMM_SHIFT (DT_TAG_SLOT_BITS + DT_TAG_SEQ_BITS)

enum dt_coll { DT_COLL_ALLREDUCE, DT_COLL_BCAST, DT_COLL_ALLGATHER };

/* A shape. Equal shapes share one schedule. */
struct dt_shape {
    enum dt_coll coll;
    dt_dtype_t dtype;
    dt_op_t op;
    size_t count; /* elements */
    size_t root;
    bool in_place;
};

/* One collective: a schedule and how far it has come. */
struct dt_request {
    struct dt_comm *comm;
    struct dt_shape shape;
    struct dt_sched sched;
    struct dt_request *next; /* in the list of active, or of idle ones */

    dt_result_t status;
    uint64_t tag; /* of the operation: communicator and sequence */
    bool note;    /* some rank that fed this operation has its notice */
    char *space[3];
    size_t left;                           /* tasks not done */
    uint32_t *pending;                     /* per task: dependencies not done */
    struct dt_tl_req *message;             /* per task: sends and receives */
    size_t *ready, ready_head, ready_tail; /* tasks to start, in order */
    size_t *flight, nflight;               /* messages under way */
};

struct dt_comm {
    struct dt_world *world;
    size_t rank, size;
    uint32_t id, sequence;
    struct dt_request *active;
    struct dt_request *idle; /* finished, kept to be run again */
    size_t nidle;
    unsigned polls;   /* tests that moved nothing */
    uint64_t steps;   /* tasks done so far */
    int32_t token[2]; /* what a barrier adds up */
    bool leave;       /* the notice, as agreed in the last allreduce */
};

/* The algorithms: add this rank's part of one collective to sched. */
void dt_allreduce_build(struct dt_sched *sched, const struct dt_comm *comm,
                        const struct dt_shape *shape);
void dt_bcast_build(struct dt_sched *sched, const struct dt_comm *comm,
                    const struct dt_shape *shape);
void dt_allgather_build(struct dt_sched *sched, const struct dt_comm *comm,
                        const struct dt_shape *shape);

/* The communicator of all ranks. */
dt_result_t dt_comm_open(struct dt_world *world, struct dt_comm **comm,
                         struct dt_error *err);

/* Nothing may be running on it, unless the world has failed. NULL is fine. */
void dt_comm_close(struct dt_comm *comm);

/* SUCCESS, or why nothing works on it any more. */
dt_result_t dt_comm_failure(const struct dt_comm *comm, struct dt_error *err);

/* Start a collective of a valid shape: a kept request of that shape, or a new
 * one. Blocks only where one is outstanding from 4096 operations ago, until
 * that is over. */
dt_result_t dt_comm_start(struct dt_comm *comm, const struct dt_shape *shape,
                          const void *sendbuf, void *recvbuf,
                          struct dt_request **request, struct dt_error *err);

/* Move everything that runs on comm; true if anything moved. */
bool dt_comm_progress(struct dt_comm *comm);

/* Progress until request is complete, a peer fails or the time is over.
 * Returns its status, and gives it back to comm. */
dt_result_t dt_comm_wait(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err);

/* The same, if it is complete already; else DT_IN_PROGRESS. */
dt_result_t dt_comm_test(struct dt_comm *comm, struct dt_request *request,
                         struct dt_error *err);

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
