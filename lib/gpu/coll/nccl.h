/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.h - collectives by NCCL, where it is installed and the user asks for
 * it: the ranks of a communicator on any nodes, each with a GPU of its own.
 *
 * As with gpu_node.h, work is put on the caller's stream. The bits of a sum are
 * NCCL's: the same on all ranks, but not those of the host. */
#ifndef DT_GPU_COLL_NCCL_H
#define DT_GPU_COLL_NCCL_H

#include "coll/engine/engine.h"
#include "gpu/gpu.h"

struct dt_gpu_nccl;

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

#endif
