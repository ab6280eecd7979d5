/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sched.h - a schedule: the DAG of send, receive, reduce and copy that one
 * rank runs for one collective of one shape.
 *
 * An algorithm builds it once; it names ranks and offsets, never transports
 * or addresses, so it can be kept and run again on other buffers. The k-th
 * send built towards a peer meets the k-th receive that the peer builds from
 * this rank: both sides must walk their messages in the same order.
 *
 * Between the ranks of a node there are rounds besides: in a round each rank
 * may post one piece of its memory, at most piece_max bytes, and any of them
 * may reduce or fetch what the others have posted. All ranks of a node build
 * the same number of rounds. No operation of a round may wait, on any rank, for
 * an operation of a higher round: then a schedule ends however few rounds are
 * open at once (dt_board's rounds_room). What was posted must not be changed by
 * a later operation unless all have read it by then, which follows from what
 * they sent or posted since; after the schedule's end the engine waits for it.
 */
#ifndef DT_COLL_ALGORITHM_SCHED_H
#define DT_COLL_ALGORITHM_SCHED_H

#include "base/error.h"

/* Where a byte is, before the buffers are known. */
enum dt_space { DT_SPACE_SEND, DT_SPACE_RECV, DT_SPACE_SCRATCH };
struct dt_ref {
    enum dt_space space;
    size_t offset; /* bytes */
};

enum dt_operation_kind {
    DT_OPERATION_SEND,   /* a, len bytes, to peer */
    DT_OPERATION_RECV,   /* dst, len bytes, from peer */
    DT_OPERATION_REDUCE, /* dst = a op b, len bytes */
    DT_OPERATION_COPY,   /* dst = a, len bytes */
    DT_OPERATION_SCALE,  /* dst = factor * a, len bytes */
    DT_OPERATION_DIVIDE, /* dst /= size of the communicator, len bytes */
    DT_OPERATION_POST,   /* post a, len bytes but for a hole, in a round */
    DT_OPERATION_REDUCE_ROUND, /* dst = factor * (op over the node's ranks, in
                                * order: a of this rank, len bytes at offset of
                                * the others' pieces of the round) */
    DT_OPERATION_FETCH, /* dst = len bytes at offset of a piece of the round;
                         * len 0 waits for it to be there */
    DT_OPERATION_JOIN,  /* nothing: many dependencies in one name */
};

struct dt_operation {
    enum dt_operation_kind kind;
    struct dt_ref dst, a, b;
    size_t len;
    size_t peer;    /* rank in the communicator; FETCH: index in the node */
    uint32_t slot;  /* k of "the k-th message" */
    size_t message; /* SEND, RECV: number among the messages */
    uint32_t round;
    size_t offset; /* REDUCE_ROUND, FETCH: in the piece; POST: of the hole */
    size_t hole;   /* POST: length of the hole */
    double factor; /* SCALE, REDUCE_ROUND */
    uint32_t ndeps;
    size_t edges; /* first of the list of dependents, or DT_OPERATION_NONE */
};

struct dt_edge {
    size_t operation, next;
};

#define DT_OPERATION_NONE SIZE_MAX

struct dt_sched {
    struct dt_operation *operations;
    size_t noperations, operations_room;
    struct dt_edge *edges;
    size_t nedges, edges_room;
    size_t scratch; /* bytes of scratch space needed */
    size_t nmessages;
    uint32_t rounds;
    /* while building */
    uint32_t *sent, *received; /* messages so far, per peer */
    size_t gate;               /* every new operation waits for this one */
    bool failed;               /* out of memory or slots; sticky */
};

/* Begin a schedule in a communicator of size ranks. */
void dt_sched_init(struct dt_sched *sched, size_t size);

/* Each adds one operation and returns its number. len 0 adds nothing and
 * returns DT_OPERATION_NONE, so an empty share needs no special case; neither
 * do the dependencies of it; only post and fetch may be empty. */
size_t dt_sched_send(struct dt_sched *sched, size_t peer, struct dt_ref a,
                     size_t len);
size_t dt_sched_recv(struct dt_sched *sched, size_t peer, struct dt_ref dst,
                     size_t len);
size_t dt_sched_reduce(struct dt_sched *sched, struct dt_ref dst,
                       struct dt_ref a, struct dt_ref b, size_t len);
size_t dt_sched_copy(struct dt_sched *sched, struct dt_ref dst, struct dt_ref a,
                     size_t len);
size_t dt_sched_scale(struct dt_sched *sched, struct dt_ref dst,
                      struct dt_ref a, size_t len, double factor);
size_t dt_sched_divide(struct dt_sched *sched, struct dt_ref dst, size_t len);

/* The next round. */
uint32_t dt_sched_round(struct dt_sched *sched);

/* Operations of a round; post may have a hole that nobody reads, of hole_len
 * bytes at hole. An empty post is one, too: it tells that this rank came so
 * far. An empty fetch waits for the peer's post. */
size_t dt_sched_post(struct dt_sched *sched, uint32_t round, struct dt_ref a,
                     size_t len, size_t hole, size_t hole_len);
size_t dt_sched_reduce_round(struct dt_sched *sched, uint32_t round,
                             struct dt_ref dst, struct dt_ref a, size_t offset,
                             size_t len, double factor);
size_t dt_sched_fetch(struct dt_sched *sched, uint32_t round, size_t index,
                      struct dt_ref dst, size_t offset, size_t len);

/* An operation that is done when all operations from number first on are. */
size_t dt_sched_join(struct dt_sched *sched, size_t first);

/* operation starts only after other is done. DT_OPERATION_NONE on either side
 * is ignored. */
void dt_sched_after(struct dt_sched *sched, size_t operation, size_t other);

/* Building is over. Error NO_MEMORY. */
dt_result_t dt_sched_finish(struct dt_sched *sched, struct dt_error *err);

void dt_sched_fini(struct dt_sched *sched);

static inline struct dt_ref dt_ref(enum dt_space space, size_t offset)
{
    return (struct dt_ref){space, offset};
}

#endif
