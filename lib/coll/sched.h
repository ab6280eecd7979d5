/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sched.h - a schedule: the DAG of send, receive, reduce and copy that one
 * rank runs for one collective of one shape.
 *
 * An algorithm builds it once; it names ranks and offsets, never transports
 * or addresses, so it can be kept and run again on other buffers. The k-th
 * send built towards a peer meets the k-th receive that the peer builds from
 * this rank: both sides must walk their messages in the same order. */
#ifndef DT_COLL_SCHED_H
#define DT_COLL_SCHED_H

#include "base/error.h"

/* Where a byte is, before the buffers are known. */
enum dt_space { DT_SPACE_SEND, DT_SPACE_RECV, DT_SPACE_SCRATCH };
struct dt_ref {
    enum dt_space space;
    size_t offset; /* bytes */
};

enum dt_task_kind {
    DT_TASK_SEND,   /* a, len bytes, to peer */
    DT_TASK_RECV,   /* dst, len bytes, from peer */
    DT_TASK_REDUCE, /* dst = a op b, len bytes */
    DT_TASK_COPY,   /* dst = a, len bytes */
    DT_TASK_DIVIDE, /* dst /= size of the communicator, len bytes */
    DT_TASK_JOIN,   /* nothing: many dependencies in one name */
};

struct dt_task {
    enum dt_task_kind kind;
    struct dt_ref dst, a, b;
    size_t len;
    size_t peer;   /* rank in the communicator */
    uint32_t slot; /* k of "the k-th message" */
    uint32_t ndeps;
    size_t edges; /* first of the list of dependents, or DT_TASK_NONE */
};

struct dt_edge {
    size_t task, next;
};

#define DT_TASK_NONE SIZE_MAX

struct dt_sched {
    struct dt_task *tasks;
    size_t ntasks, tasks_room;
    struct dt_edge *edges;
    size_t nedges, edges_room;
    size_t scratch; /* bytes of scratch space needed */
    /* while building */
    uint32_t *sent, *received; /* messages so far, per peer */
    size_t gate;               /* every new task waits for this one */
    bool failed;               /* out of memory or slots; sticky */
};

/* Begin a schedule in a communicator of size ranks. */
void dt_sched_init(struct dt_sched *sched, size_t size);

/* Each adds one task and returns its number. len 0 adds nothing and returns
 * DT_TASK_NONE, so an empty share needs no special case; neither do the
 * dependencies of it. */
size_t dt_sched_send(struct dt_sched *sched, size_t peer, struct dt_ref a,
                     size_t len);
size_t dt_sched_recv(struct dt_sched *sched, size_t peer, struct dt_ref dst,
                     size_t len);
size_t dt_sched_reduce(struct dt_sched *sched, struct dt_ref dst,
                       struct dt_ref a, struct dt_ref b, size_t len);
size_t dt_sched_copy(struct dt_sched *sched, struct dt_ref dst, struct dt_ref a,
                     size_t len);
size_t dt_sched_divide(struct dt_sched *sched, struct dt_ref dst, size_t len);

/* A task that is done when all tasks from number first on are. */
size_t dt_sched_join(struct dt_sched *sched, size_t first);

/* task starts only after other is done. DT_TASK_NONE on either side is
 * ignored. */
void dt_sched_after(struct dt_sched *sched, size_t task, size_t other);

/* Building is over. Error NO_MEMORY. */
dt_result_t dt_sched_finish(struct dt_sched *sched, struct dt_error *err);

void dt_sched_fini(struct dt_sched *sched);

static inline struct dt_ref dt_ref(enum dt_space space, size_t offset)
{
    return (struct dt_ref){space, offset};
}

#endif
