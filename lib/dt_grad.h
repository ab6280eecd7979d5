/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt_grad.h - the gradient engine of libdt: collectives on named tensors, which
 * the ranks start in any order and from any thread.
 *
 * An operation of a name begins when all ranks of its process set have started
 * it; who comes first waits, and nothing else does. The ranks tell each other
 * what they have started (they negotiate), and find then whether they disagree.
 * The gradients of a training step are the same in each step, and so go by a
 * plan: the first step is negotiated, and from then on a gradient is added to
 * its bucket and the bucket sent when it is full, without any message but the
 * data. doc/gradients.md describes both.
 *
 * A result never depends on who came first: the same calls on the same ranks
 * give the same bits, in each step and in each run.
 *
 * Results, errors and dt_last_error() are as in dt.h. Threads: any thread may
 * call any function at any time, but dt_grad_open and dt_grad_close, which are
 * called while no other thread uses the engine; the engine has a thread of its
 * own, too. Memory: an operation borrows its buffers until it is complete. They
 * are in the memory of the host, or, those of one operation together, of one
 * GPU, and then so on all ranks, else MISMATCH: the input is read when what was
 * put on the stream before is done, and the output is complete for every stream
 * when the operation is. Waits: nothing waits for longer than DT_TIMEOUT
 * seconds (600 unless set) without an error. A process that was forked from
 * that of the engine cannot use it: INVALID_ARG. */
#ifndef DT_GRAD_H
#define DT_GRAD_H

#include "dt.h"

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_grad *dt_grad_t;           /* the engine */
typedef struct dt_grad_plan *dt_grad_plan_t; /* the gradients of one model */
typedef struct dt_grad_work *dt_grad_work_t; /* operations that were started */

/* ---- the engine ---- */

/* Zero in any field means its default. Equal on all ranks. */
typedef struct dt_grad_options {
    size_t bucket_bytes;       /* size of a bucket: 4 MiB */
    size_t first_bucket_bytes; /* of the first one, to begin early: 256 KiB */
    double stall_seconds;      /* say who waits for what after: 60; < 0 never */
    double stall_fatal;        /* and fail after: never */
} dt_grad_options_t;

/* Start the engine. options NULL: all defaults. Collective over the world,
 * blocks; dt_init came before. It can be closed and opened again. Errors:
 * NOT_INITIALIZED, NO_MEMORY, SYSTEM; MISMATCH when the ranks' options differ;
 * those of the collectives. */
dt_result_t dt_grad_open(const dt_grad_options_t *options, dt_grad_t *grad);

/* Stop it and free it with its plans and sets, and all work that was not freed.
 * NULL is fine. Collective: returns when all ranks have called it. What is
 * under way and cannot complete any more fails on all ranks, with INVALID_ARG.
 * Comes before dt_finalize. After PROC_FAILED or TIMED_OUT it does not wait.
 * Errors: those of the collectives; it is freed all the same. */
dt_result_t dt_grad_close(dt_grad_t grad);

/* ---- process sets ----
 *
 * Set 0, DT_GRAD_WORLD, has all ranks. Operations of disjoint sets go on at the
 * same time. A rank has a number in each set: its place among the set's ranks,
 * which are in ascending order. */
#define DT_GRAD_WORLD 0

/* Make a set of n ranks of the world, given in any order. Collective over the
 * whole world, blocks. All give the same, else MISMATCH. INVALID_ARG, on all
 * ranks: a set of these ranks exists, a rank is twice or there is none such. */
dt_result_t dt_grad_set_add(dt_grad_t grad, const int *ranks, int n, int *set);

/* Remove a set, but not set 0; nothing of it may be under way. Its plans are
 * removed as well. Collective over the world, blocks. */
dt_result_t dt_grad_set_remove(dt_grad_t grad, int set);

/* This rank's number in the set, -1 where it is none of it; how many ranks it
 * has; the error where there is no such set. */
int dt_grad_set_rank(dt_grad_t grad, int set);
int dt_grad_set_size(dt_grad_t grad, int set);

/* The sets there are, in ascending order; *n is the room in sets, then how many
 * there are (also when that is more: INVALID_ARG). The same for the ranks of a
 * set. */
dt_result_t dt_grad_sets(dt_grad_t grad, int *sets, int *n);
dt_result_t dt_grad_set_ranks(dt_grad_t grad, int set, int *ranks, int *n);

/* ---- operations ---- */

typedef enum dt_grad_kind {
    DT_GRAD_ALLREDUCE = 0,
    DT_GRAD_ALLGATHER = 1, /* first dimensions may differ */
    DT_GRAD_BROADCAST = 2,
    DT_GRAD_ALLTOALL = 3,      /* rows to each rank by splits */
    DT_GRAD_REDUCESCATTER = 4, /* rows in shares; the first get one more */
    DT_GRAD_BARRIER = 5,
} dt_grad_kind_t;

/* Adaptive summation (Maleki et al., "Scaling Distributed Training with
 * Adaptive Summation", 2021): a reduction beside those of dt_op_t, for
 * allreduce of floating-point types among a power of two of ranks. */
#define DT_GRAD_ADASUM 5

#define DT_GRAD_DIMS 16 /* at most */

typedef struct dt_grad_op {
    dt_grad_kind_t kind;
    /* Element type. Where elements are only moved, any size of element will do:
     * element_bytes is it, and dtype is not used; else element_bytes is 0. */
    dt_dtype_t dtype;
    size_t element_bytes;
    /* What is sent over the network instead of dtype: F16 or BF16 for an
     * allreduce of F32 or F64, where it halves or quarters what is sent, or I8
     * for such a gradient of a plan; else equal to dtype.
     *
     * I8 has a scale for each block of 128 elements. What rounding takes away
     * from a gradient is added to it in the next step, on the rank that lost it
     * (error feedback): the residual, F32, for which the engine holds 4 bytes
     * per element. A block with an element that is infinite, NaN or too large
     * for F32 arrives as NaN, and loses its residual. Among one rank nothing is
     * sent and nothing lost. */
    dt_dtype_t wire;
    int op;  /* dt_op_t or DT_GRAD_ADASUM; reducescatter: SUM or AVG */
    int set; /* process set */
    /* broadcast: whose, as its number in the set */
    int root;
    /* This rank's shape, row-major; ndim may be 0 but for allgather, alltoall
     * and reducescatter. It is copied. */
    int ndim;
    const int64_t *shape;
    /* alltoall: rows for each rank of the set, whose sum is shape[0]; NULL: the
     * same for all. Copied. */
    const int64_t *splits;
    /* Factors of SUM and AVG, applied before and after, in F64 to F64 and to
     * integers, which are truncated then, else in F32. 1.0 for nothing. */
    double prescale, postscale;
    /* in is read; out is written when the operation is complete, and may be
     * in. For allgather and alltoall out is NULL: dt_grad_take. Broadcast: in
     * is read at root only. */
    const void *in;
    void *out;
} dt_grad_op_t;

/* Start n operations of one set, which begin together: when all ranks have
 * started this name with as many. name: any text of 1 to 1000 bytes, or NULL:
 * one is made of a running number, and so these calls come in the same order on
 * all ranks. Returns at once; *work is to be freed. Errors, of this call only,
 * on this rank only: INVALID_ARG for what is wrong whatever the others do, also
 * for a name that is under way on this rank; UNSUPPORTED, NO_MEMORY; what has
 * broken the engine.
 *
 * Errors of the work: MISMATCH, on all ranks of the set, when they disagree
 * about kind, type, shape, op, root, factors; UNSUPPORTED on all who have
 * started what cannot be done while a rank has joined. */
dt_result_t dt_grad_start(dt_grad_t grad, const char *name,
                          const dt_grad_op_t *ops, int n, dt_grad_work_t *work);

/* The same for tensors that are made on a stream of their GPU; DT_STREAM_NONE,
 * as in dt_grad_start, is its default stream, or none for memory of the host.
 * Never waits for the stream. INVALID_ARG when in and out, or stream, are in
 * different places; UNSUPPORTED when there is a stream, but libdt has no GPU.
 */
dt_result_t dt_grad_start_on(dt_grad_t grad, const char *name,
                             const dt_grad_op_t *ops, int n, dt_stream_t stream,
                             dt_grad_work_t *work);

/* How the work ended: DT_SUCCESS or its error, DT_IN_PROGRESS if it has not.
 * dt_grad_wait blocks until it has, or for so many seconds; < 0: no limit but
 * DT_TIMEOUT, after which it fails. */
dt_result_t dt_grad_test(dt_grad_work_t work);
dt_result_t dt_grad_wait(dt_grad_work_t work, double seconds);

/* Of operation i of completed work: the shape of its output (ndim at most
 * DT_GRAD_DIMS; shape may be NULL), and for alltoall how many rows came from
 * each rank of the set (received may be NULL). */
dt_result_t dt_grad_output(dt_grad_work_t work, int i, int *ndim,
                           int64_t *shape, int64_t *received);

/* Copy the output of an allgather or alltoall to the caller's memory, once. */
dt_result_t dt_grad_take(dt_grad_work_t work, int i, void *out);

/* The same to memory that may be a GPU's, after what was put on the stream;
 * waits until it is there. */
dt_result_t dt_grad_take_on(dt_grad_work_t work, int i, void *out,
                            dt_stream_t stream);

/* Forget the work; it need not be complete, and goes on: its buffers are in use
 * until it is. NULL is fine. */
void dt_grad_free(dt_grad_work_t work);

/* This rank has no more data. Until all ranks of the world have joined, it adds
 * zeros to the allreduces, SUM or AVG, that the others start, whose divisor
 * stays the number of ranks. Blocks until all have; *last is the one that came
 * last. seconds as for dt_grad_wait: DT_IN_PROGRESS, and then it is to be
 * called again. */
dt_result_t dt_grad_join(dt_grad_t grad, double seconds, int *last);

/* ---- plans ---- */

/* Make a plan for gradients of the ranks of a set. Collective over these,
 * blocks. Errors: INVALID_ARG, NO_MEMORY, those of the collectives. */
dt_result_t dt_grad_plan_create(dt_grad_t grad, int set, dt_grad_plan_t *plan);

/* Collective over its set, as creating it. NULL is fine. */
dt_result_t dt_grad_plan_destroy(dt_grad_plan_t plan);

/* Name a gradient: op is an allreduce, SUM or AVG, of I32, I64 or a
 * floating-point type of 16 bits or more, whose set, in and out are not used.
 * Local; *id is a small number, from 0 on. A name that is known changes this
 * gradient, which is not under way then. */
dt_result_t dt_grad_plan_tensor(dt_grad_plan_t plan, const char *name,
                                const dt_grad_op_t *op, int *id);

/* The gradient is in `in`; its sum is wanted in out, which may be in. Once per
 * step. Never blocks. INVALID_ARG when it is under way already. */
dt_result_t dt_grad_plan_submit(dt_grad_plan_t plan, int id, const void *in,
                                void *out);

/* The same for a gradient that is made on a stream, as dt_grad_start_on. */
dt_result_t dt_grad_plan_submit_on(dt_grad_plan_t plan, int id, const void *in,
                                   void *out, dt_stream_t stream);

/* Wait for one gradient, which was submitted, or was not and is complete; it
 * can be submitted again after. */
dt_result_t dt_grad_plan_wait(dt_grad_plan_t plan, int id, double seconds);

/* The step is over: wait for all that was submitted. Called by all ranks of the
 * set, once per step, and in the same order where there are several plans; they
 * have then submitted the same gradients; the plan is
 * made at the end of the first such step, in the order in which the first rank
 * of the set has submitted. If a later step is another, it is negotiated again,
 * and nothing else is lost. seconds as for dt_grad_wait: DT_IN_PROGRESS, and
 * then it is to be called again. Errors: the first error of a gradient. */
dt_result_t dt_grad_plan_step(dt_grad_plan_t plan, double seconds);

/* Read and restore the residual of a gradient that goes as I8, count elements
 * as it has: what a checkpoint of this rank needs, besides the model, so that
 * the training goes on with the same bits. It is zeros before the first step,
 * and among one rank, where restoring has no effect. Between steps, local.
 * Errors: INVALID_ARG for a gradient that is under way, for another count and
 * for one that does not go as I8. */
dt_result_t dt_grad_plan_residual(dt_grad_plan_t plan, int id, float *residual,
                                  size_t count);
dt_result_t dt_grad_plan_restore(dt_grad_plan_t plan, int id,
                                 const float *residual, size_t count);

/* ---- what it did ---- */

typedef struct dt_grad_stats {
    uint64_t operations;  /* completed, of dt_grad_start */
    uint64_t gradients;   /* completed, of plans */
    uint64_t bytes;       /* of both, as the caller has them */
    uint64_t wire_bytes;  /* handed to collectives, after compression */
    uint64_t rounds;      /* of negotiation */
    uint64_t collectives; /* of data that were started: buckets, operations */
    uint64_t buckets;     /* among these, buckets of plans */
    uint64_t breaks;      /* plans that were given up because a step changed */
    uint64_t steps;       /* dt_grad_plan_step that were completed */
    double wait_seconds;  /* that callers spent in waits */
    double busy_seconds;  /* that packing, unpacking and casting took */
    uint64_t held_bytes;  /* of memory for buckets and residuals, now */
} dt_grad_stats_t;

dt_result_t dt_grad_stats(dt_grad_t grad, dt_grad_stats_t *stats);

/* Write a timeline to the file from now on, in the JSON that Chrome's tracing
 * and Perfetto read: for each tensor when it was negotiated, packed, reduced
 * and unpacked, and each bucket. NULL ends it, and makes the file complete.
 * Local: each rank that calls it writes its own. INVALID_ARG when there is one,
 * IO. */
dt_result_t dt_grad_timeline(dt_grad_t grad, const char *path);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
