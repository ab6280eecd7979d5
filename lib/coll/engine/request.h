/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* request.h - one collective: the schedule that a rank runs for it, and how far
 * it has come. The caller holds the lock of the world. */
#ifndef DT_COLL_ENGINE_REQUEST_H
#define DT_COLL_ENGINE_REQUEST_H

#include "coll/algorithm/algorithm.h"
#include "coll/node/local.h"

struct dt_comm;

/* One collective. */
struct dt_request {
    struct dt_comm *comm;
    struct dt_shape shape;
    struct dt_request *next;    /* in the list of active or of idle requests */
    struct dt_request *grouped; /* the next of its group */

    dt_result_t status;
    uint64_t tag;   /* communicator and sequence number */
    bool notice;    /* a rank that contributed has its notice */
    uint64_t round; /* the first of its rounds */
    uint64_t rounds;
    uint64_t released; /* how many of its rounds this rank has finished with */
    bool in_place;     /* a piece was posted in place */
    bool on_device;    /* device.h: only comm, shape and status are used */

    /* either an allreduce inside the node: */
    bool is_local;
    struct dt_local local;
    /* or a schedule: */
    struct dt_sched plans[2]; /* of all segments but the last; of the last */
    size_t segment, first;    /* elements of a segment; before this one */
    uint64_t base;            /* rounds before this one */
    const struct dt_sched *sched; /* of this one */
    char *space[3];
    size_t left;               /* operations not done */
    uint32_t *pending;         /* per operation: dependencies not done */
    struct dt_tl_req *message; /* per operation: sends and receives */
    size_t *ready, ready_head, ready_tail; /* operations to start, in order */
    size_t *flight, nflight;               /* messages under way */
    size_t *watch, nwatch; /* operations that wait for the board */
    uint32_t *uses;        /* per round: operations not done */
    const void **inputs;   /* of the reduction of a round */
};

/* A request of that shape, ready to be begun, with all the memory that it
 * needs. Error NO_MEMORY. */
dt_result_t dt_request_create(struct dt_comm *comm,
                              const struct dt_shape *shape,
                              struct dt_request **request,
                              struct dt_error *err);

/* Begin, or begin again: it has its tag and its first round. The buffers are
 * borrowed until its status is no longer DT_IN_PROGRESS. */
void dt_request_begin(struct dt_request *request, const void *sendbuf,
                      void *recvbuf);

/* Run the operations that can run; true if anything moved. On a failed message
 * the status becomes that failure. Never blocks. */
bool dt_request_progress(struct dt_request *request);

/* NULL is fine. */
void dt_request_destroy(struct dt_request *request);

#endif
