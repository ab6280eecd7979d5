/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.h - collectives by NCCL, where it is installed and the user asks for
 * it: the ranks of a communicator on any nodes, each with a GPU of its own.
 *
 * As with node.h, work is put on the caller's stream. The bits of a sum are
 * NCCL's: the same on all ranks, but not those of the host. */
#ifndef DT_GPU_COLL_NCCL_H
#define DT_GPU_COLL_NCCL_H

#include <pthread.h>

#include "coll/engine/engine.h"
#include "gpu/coll/nccl_api.h"
#include "gpu/gpu.h"

/* In pinned memory. */
struct dt_nccl_words {
    _Alignas(64) uint32_t done;    /* the last ticket that is over */
    _Alignas(64) int32_t added[2]; /* by barriers, and the test: in, out */
};

/* OPEN -> ENDING, by an end or an abort -> ENDED */
enum dt_nccl_state { DT_NCCL_OPEN, DT_NCCL_ENDING, DT_NCCL_ENDED };

struct dt_gpu_nccl {
    struct dt_nccl_api api;
    struct dt_world *world;
    struct dt_gpu *gpu;
    int device;
    size_t rank, size;
    /* NCCL takes one thread at a time for a communicator; not held while the
     * world's is waited for by who already has that */
    pthread_mutex_t lock;
    struct dt_nccl_comm *comm;
    _Atomic int state;
    _Atomic bool aborted;
    struct dt_nccl_words *words;
    uint32_t last;      /* ticket */
    dt_stream_t stream; /* that the last one was put on */
};

/* Begin a communicator of NCCL among all ranks of comm, device being mine, and
 * let it add some numbers. Collective over comm, whose host collectives it
 * uses; blocks, no longer than DT_TIMEOUT. *nccl is NULL, on all ranks, where
 * it is not to be had, and reason (512 bytes) says who cannot and why: no NCCL,
 * too old a one, different versions, two ranks with one GPU, a begin that fails
 * or hangs, wrong numbers. Errors: those of the collectives, NO_MEMORY. */
dt_result_t dt_gpu_nccl_open(struct dt_comm *comm, struct dt_gpu *gpu,
                             int device, struct dt_gpu_nccl **nccl,
                             char reason[512], struct dt_error *err);

/* Wait for what is under way here: nothing can be started after it. Not
 * collective; when all is well it comes before the last barrier of comm, and
 * close after it. NULL is fine. */
void dt_gpu_nccl_leave(struct dt_gpu_nccl *nccl);

/* When all is well, collective without being a barrier. After a failure it
 * aborts. Waits, with an end, for what NCCL does then; what has not ended stays
 * for ever. NULL is fine. */
void dt_gpu_nccl_close(struct dt_gpu_nccl *nccl);

/* Can it be done so? Equal on all ranks for equal shapes. Not: SEND and RECV,
 * factors, reductions of 8-bit floats, MIN and MAX of floats (those of NCCL
 * pass over a NaN), AVG of integers. */
bool dt_gpu_nccl_serves(const struct dt_shape *shape);

/* Put it on the stream, which is not being captured, behind all that was
 * started before on any stream. *ticket tells dt_gpu_nccl_done when it is over.
 * A barrier is an ALLREDUCE with both buffers NULL. Waits where NCCL has to
 * connect first, at most DT_TIMEOUT. After an error NCCL can only be aborted:
 * PROC_FAILED, TIMED_OUT, SYSTEM. */
dt_result_t dt_gpu_nccl_start(struct dt_gpu_nccl *nccl,
                              const struct dt_shape *shape, const void *sendbuf,
                              void *recvbuf, dt_stream_t stream,
                              uint32_t *ticket, struct dt_error *err);

/* Is everything up to this ticket over? */
bool dt_gpu_nccl_done(const struct dt_gpu_nccl *nccl, uint32_t ticket);

/* Has NCCL found a failure meanwhile? Never blocks; any thread. */
dt_result_t dt_gpu_nccl_check(struct dt_gpu_nccl *nccl, struct dt_error *err);

/* All that is under way ends soon with undefined contents; nothing more can be
 * started. Does not wait for it; any thread. */
void dt_gpu_nccl_abort(struct dt_gpu_nccl *nccl);

/* ---- nccl_calls.c ---- */

/* Hand a valid shape to NCCL; a code of it, maybe DT_NCCL_IN_PROGRESS: then
 * dt_nccl_poll has to be asked until it is not, before anything else is put on
 * the stream. The device has been entered, and the lock is held. */
int dt_nccl_put(struct dt_gpu_nccl *nccl, const struct dt_shape *shape,
                const void *sendbuf, void *recvbuf, dt_stream_t stream);
int dt_nccl_poll(struct dt_gpu_nccl *nccl);

#endif
