/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* coll.h - collectives on GPU memory: what the rest of coll sees of them.
 *
 * They are put on streams and return; libdt's own thread moves what goes
 * through the host. A communicator's part in it, struct dt_gpu_comm, is made at
 * its first such call. Requests of theirs have is_gpu set and belong to these
 * functions alone. */
#ifndef DT_GPU_COLL_COLL_H
#define DT_GPU_COLL_COLL_H

#include "coll/engine/engine.h"
#include "coll/api/call.h"

/* Where are the buffers of this valid call, which is not empty? Sets on_gpu,
 * and then device and capturing. Errors: INVALID_ARG, UNSUPPORTED (a stream,
 * but no GPU); those of the driver. */
dt_result_t dt_gpu_place(struct dt_call *call, struct dt_error *err);

/* Put a call with on_gpu on its way. The first of a communicator is collective
 * and blocks; send and receive never are. No GPU is waited for. *request is to
 * be given to dt_gpu_end, dt_gpu_wait, a successful dt_gpu_test or
 * dt_gpu_forget. */
dt_result_t dt_gpu_begin(const struct dt_call *call,
                         struct dt_request **request, struct dt_error *err);

/* What is put on the call's stream from now on comes after the result. Nothing
 * happens on DT_STREAM_NONE. */
dt_result_t dt_gpu_follow(struct dt_request *request, struct dt_error *err);

/* Nobody asks for it any more. */
void dt_gpu_forget(struct dt_request *request);

/* The end of a blocking call: follow and forget it, or, on DT_STREAM_NONE, wait
 * for it. */
dt_result_t dt_gpu_end(struct dt_request *request, struct dt_error *err);

/* As dt_comm_wait and dt_comm_test. */
dt_result_t dt_gpu_wait(struct dt_request *request, struct dt_error *err);
dt_result_t dt_gpu_test(struct dt_request *request, struct dt_error *err);

/* Complete all that is under way on comm, and tell its ranks that this one is
 * about to go: before the last barrier. */
dt_result_t dt_gpu_leave(struct dt_comm *comm, struct dt_error *err);

/* Give everything of comm's back, requests too; when all ranks have left, or
 * after a failure. */
void dt_gpu_close(struct dt_comm *comm);

/* ---- for the thread; with the lock held ---- */

/* While messages in memory of a GPU are under way, its context is to be the
 * thread's current one when the transports move: the GPU's leave undoes it, if
 * the answer is true. */
struct dt_gpu_scope;
bool dt_gpu_enter(struct dt_world *world, struct dt_gpu_scope *scope);

/* Is anything under way that needs somebody to move it? */
bool dt_gpu_busy(const struct dt_world *world);

/* Can something be under way of which the host does not know: graphs? */
bool dt_gpu_hidden(const struct dt_world *world);

/* Nothing of it has moved: wait a little, the lock given up, and look now and
 * then whether the peers are there, and this rank's GPU. others: something else
 * has moved. */
void dt_gpu_idle(struct dt_backoff *backoff, struct dt_world *world,
                 bool others);

/* Move what can be moved; after a failure, let go everything that a GPU waits
 * for. world->gpu_moves counts what moved. */
void dt_gpu_step(struct dt_world *world);

#endif
