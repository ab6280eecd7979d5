/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* call.h - one call of the public API: what it asks for, and whether that can
 * be done. */
#ifndef DT_COLL_API_CALL_H
#define DT_COLL_API_CALL_H

#include "coll/engine/engine.h"

/* A call and its i-form are one. The values go over the wire with DT_CHECK. */
enum dt_call_kind {
    DT_CALL_ALLREDUCE,
    DT_CALL_ALLREDUCE_SCALED,
    DT_CALL_REDUCE,
    DT_CALL_BCAST,
    DT_CALL_ALLGATHER,
    DT_CALL_ALLGATHERV,
    DT_CALL_REDUCE_SCATTER,
    DT_CALL_REDUCE_SCATTERV,
    DT_CALL_ALLTOALL,
    DT_CALL_ALLTOALLV,
    DT_CALL_GATHER,
    DT_CALL_SCATTER,
    DT_CALL_BARRIER,
    DT_CALL_SEND,
    DT_CALL_RECV,
    DT_CALL_SPLIT,
    DT_CALL_DESTROY,
    DT_CALL_FINALIZE,
    DT_CALL_CREATE,
};
#define DT_CALLS (DT_CALL_CREATE + 1)

struct dt_call {
    enum dt_call_kind kind;
    int root; /* or peer, as given */
    dt_comm_t comm;
    dt_stream_t stream;
    const void *sendbuf;
    void *recvbuf;
    struct dt_shape shape; /* root and in_place follow from the check */
    /* What the check finds, where the world has a device: bytes from the start
     * of each buffer to its end; and what its place finds. */
    size_t send_len, recv_len;
    bool on_device;
    int device;     /* its number, as this process counts them */
    bool capturing; /* the stream, into a graph */
};

/* "dt_allreduce" and so on; "?" for a value that is none. */
const char *dt_call_name(enum dt_call_kind kind);

/* Does it reduce; has it a type and a count; has it a root (a peer is none). */
bool dt_call_has_op(enum dt_call_kind kind);
bool dt_call_has_type(enum dt_call_kind kind);
bool dt_call_has_root(enum dt_call_kind kind);

/* Is the call valid? Completes it: shape.root, shape.in_place; a buffer that
 * is ignored becomes NULL. *empty: there is nothing to do on any rank. Errors:
 * NOT_INITIALIZED, INVALID_ARG, UNSUPPORTED. */
dt_result_t dt_call_check(struct dt_call *call, bool *empty,
                          struct dt_error *err);

/* Check it, let the ranks compare it with DT_CHECK, and run it: a blocking one
 * (in a group it only begins) and an i-form. These are what the public
 * functions return, with dt_last_error() set. */
dt_result_t dt_call_run(struct dt_call *call);
dt_result_t dt_call_start(struct dt_call *call, dt_request_t *request);

#endif
