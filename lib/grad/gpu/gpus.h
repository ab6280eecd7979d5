/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpus.h - memory of GPUs: which tensors are there, the engine's own streams,
 * and pinned memory of the host, by which a GPU tells how far it is.
 *
 * grad->gpus is NULL in a process without GPUs. A tensor of a GPU is
 * submitted with the stream on which it is made: an event is recorded there,
 * and the engine's stream waits for it before the tensor is read. The host
 * never waits for a stream: a signal is put behind what it wants to know of,
 * and each pass looks whether that was written.
 *
 * The engine has two streams on each device, on which nothing waits for another
 * rank: on FETCH tensors are copied to the host, after what the program does;
 * on RETURN results are unpacked, or copied from the host. The collectives of a
 * plan have a stream of their own, as those of two plans may begin in another
 * order on another rank.
 *
 * Errors of the functions: those of gpu/gpu.h, and NO_MEMORY. All but
 * dt_gpus_place and dt_gpus_take are called with the drive lock. */
#ifndef DT_GRAD_GPU_GPUS_H
#define DT_GRAD_GPU_GPUS_H

#include "gpu/gpu.h"
#include "grad/state.h"

enum dt_gpus_use { DT_GPUS_FETCH, DT_GPUS_RETURN, DT_GPUS_REDUCE };

/* Memory of the host that GPUs read and write. */
struct dt_pinned {
    struct dt_pinned *next;
    int device;
    size_t bytes;
    unsigned char *data; /* of that many bytes */
    uint32_t *signal;
    uint32_t wanted; /* in it when the GPU is done */
};

dt_result_t dt_gpus_open(struct dt_grad *grad, struct dt_error *err);
/* Nothing is under way any more. */
void dt_gpus_close(struct dt_grad *grad);

/* Find out where the buffers of an item are that this rank of the set starts:
 * sets type.place and device, and for those on a GPU marks what is on the
 * stream now. Local; any thread. Errors: UNSUPPORTED where there is a stream,
 * but no GPU can be used; INVALID_ARG for buffers in two places, for some that
 * are not on the stream's GPU, and for reductions of misaligned ones. */
dt_result_t dt_gpus_place(struct dt_grad *grad, struct dt_item *item,
                          const struct dt_grad_set *set, dt_stream_t stream,
                          struct dt_error *err);

/* The mark is not needed any more. Any thread; NULL is fine. */
void dt_gpus_unmark(struct dt_grad *grad, struct dt_item *item);

/* The stream of the engine, or, for REDUCE, of the plan, else NULL; it is made
 * at the first call. The streams of a plan end with it: nothing is on them. */
dt_result_t dt_gpus_stream(struct dt_grad *grad, int device,
                           enum dt_gpus_use use,
                           const struct dt_grad_plan *plan, dt_stream_t *stream,
                           struct dt_error *err);
void dt_gpus_end_plan(struct dt_grad *grad, const struct dt_grad_plan *plan);

/* What is put on the stream from now on comes after the program has made the
 * item's input; the mark is used up. */
dt_result_t dt_gpus_follow(struct dt_grad *grad, struct dt_item *item,
                           dt_stream_t stream, struct dt_error *err);

/* Put a copy, or conversions, on a stream of device. */
dt_result_t dt_gpus_copy(struct dt_grad *grad, int device, void *dst,
                         const void *src, size_t bytes, dt_stream_t stream,
                         struct dt_error *err);
dt_result_t dt_gpus_convert(struct dt_grad *grad, int device,
                            const struct dt_gpu_part *parts, size_t n,
                            dt_stream_t stream, struct dt_error *err);

/* Memory of a GPU for buckets. */
dt_result_t dt_gpus_alloc(struct dt_grad *grad, int device, size_t bytes,
                          void **data, struct dt_error *err);
void dt_gpus_free(struct dt_grad *grad, void *data);

/* Pinned memory, which is kept for others when it is put back. NULL is fine. */
dt_result_t dt_pinned_get(struct dt_grad *grad, int device, size_t bytes,
                          struct dt_pinned **pinned, struct dt_error *err);
void dt_pinned_put(struct dt_grad *grad, struct dt_pinned *pinned);

/* Signal when all that is on the stream now is complete; was it? */
dt_result_t dt_pinned_signal(struct dt_grad *grad, struct dt_pinned *pinned,
                             dt_stream_t stream, struct dt_error *err);
bool dt_pinned_is_signalled(const struct dt_pinned *pinned);

/* After a failure: wait until the GPUs do not use the program's memory any
 * more, for at most so many seconds. */
void dt_gpus_drain(struct dt_grad *grad, double seconds);

/* Copy from memory of the host to memory that may be a GPU's, in the order of
 * the stream, and wait until it is there. Any thread. */
dt_result_t dt_gpus_take(struct dt_grad *grad, void *dst, const void *src,
                         size_t bytes, dt_stream_t stream,
                         struct dt_error *err);

#endif
