/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.h - collectives by NCCL, where it is installed and the user asks for it.
 * The ranks of the communicator may be on any nodes; each has a GPU of its own.
 *
 * As with node.h, work is put on the caller's stream. The bits of a sum are
 * those of NCCL: the same on all ranks, but not those of the host's
 * collectives. */
#ifndef DT_GPU_COLL_NCCL_H
#define DT_GPU_COLL_NCCL_H

#include <pthread.h>

#include "coll/engine/engine.h"
#include "gpu/coll/nccl_api.h"
#include "gpu/gpu.h"

/* In pinned memory. */
struct dt_nccl_words {
    _Alignas(64) uint32_t done; /* the last ticket that is complete */
    _Alignas(64)
        int32_t added[2]; /* operands of barriers and of the test: in, out */
};

/* OPEN -> ENDING (by finalize or abort) -> ENDED */
enum dt_nccl_state { DT_NCCL_OPEN, DT_NCCL_ENDING, DT_NCCL_ENDED };

struct dt_gpu_nccl {
    struct dt_nccl_api api;
    struct dt_world *world;
    struct dt_gpu *gpu;
    int device;
    size_t rank, size;
    /* NCCL allows one thread at a time to use a communicator. Not held while
     * the world's lock is waited for by who already has that */
    pthread_mutex_t lock;
    struct dt_nccl_comm *comm;
    _Atomic int state;
    _Atomic bool aborted;
    struct dt_nccl_words *words;
    uint32_t last;      /* ticket */
    dt_stream_t stream; /* that the last one was put on */
};

/* Create a communicator of NCCL for all ranks of comm, and test it by an
 * allreduce. device is this rank's. Collective over comm, whose host
 * collectives it uses; blocks, at most for DT_TIMEOUT. Where NCCL is not
 * available, *nccl is NULL on all ranks, and reason (512 bytes) says which rank
 * cannot and why: no NCCL, too old a version, different versions, two ranks
 * with one GPU, an initialization that fails or hangs, wrong results. Errors:
 * those of the collectives, NO_MEMORY. */
dt_result_t dt_gpu_nccl_open(struct dt_comm *comm, struct dt_gpu *gpu,
                             int device, struct dt_gpu_nccl **nccl,
                             char reason[512], struct dt_error *err);

/* Wait for the collectives of this rank. Nothing can be started afterwards. Not
 * collective. Without a failure, call it before the last barrier of comm, and
 * close after the barrier. NULL is allowed. */
void dt_gpu_nccl_leave(struct dt_gpu_nccl *nccl);

/* Without a failure this is collective, but not a barrier. After a failure it
 * aborts. Waits for NCCL to end, with a time limit; what has not ended by then
 * is never freed. NULL is allowed. */
void dt_gpu_nccl_close(struct dt_gpu_nccl *nccl);

/* Can NCCL do this shape? Equal on all ranks for equal shapes. Not supported:
 * SEND and RECV, factors, reductions of 8-bit floats, MIN and MAX of floats
 * (NCCL's ignore a NaN), AVG of integers. */
bool dt_gpu_nccl_serves(const struct dt_shape *shape);

/* Put a collective on the stream, which is not being captured. It runs after
 * all that was started before, on any stream. *ticket is for dt_gpu_nccl_done.
 * A barrier is an ALLREDUCE with both buffers NULL. Where NCCL has to connect
 * first, it blocks, at most for DT_TIMEOUT. After an error NCCL can only be
 * aborted: PROC_FAILED, TIMED_OUT, SYSTEM. */
dt_result_t dt_gpu_nccl_start(struct dt_gpu_nccl *nccl,
                              const struct dt_shape *shape, const void *sendbuf,
                              void *recvbuf, dt_stream_t stream,
                              uint32_t *ticket, struct dt_error *err);

/* Are all collectives up to this ticket complete? */
bool dt_gpu_nccl_done(const struct dt_gpu_nccl *nccl, uint32_t ticket);

/* Has NCCL reported an asynchronous error? Never blocks. Any thread. */
dt_result_t dt_gpu_nccl_check(struct dt_gpu_nccl *nccl, struct dt_error *err);

/* Abort: the collectives under way end soon, with undefined contents, and none
 * can be started. Does not wait for them. Any thread. */
void dt_gpu_nccl_abort(struct dt_gpu_nccl *nccl);

/* ---- nccl_calls.c ---- */

/* Call NCCL for a valid shape. Returns a code of NCCL. After
 * DT_NCCL_IN_PROGRESS, call dt_nccl_poll until it returns another code, before
 * anything else is put on the stream. The device has been entered, and the lock
 * is held. */
int dt_nccl_put(struct dt_gpu_nccl *nccl, const struct dt_shape *shape,
                const void *sendbuf, void *recvbuf, dt_stream_t stream);
int dt_nccl_poll(struct dt_gpu_nccl *nccl);

#endif
