/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt.h - the public interface of libdt, distributed training under Slurm.
 *
 * A program calls dt_init(), moves its gradients with dt_allreduce(), asks
 * dt_should_exit() once per step, keeps itself safe with dt_ckpt_save(), and
 * calls dt_finalize(). Under `srun --dt-gpus` the ranks find each other by
 * themselves; started by hand, the program is a job of one rank.
 *
 * Results. Every function that can fail returns a dt_result_t: DT_SUCCESS, or
 * a negative DT_ERR_*, and then dt_last_error() has a line of text. Outputs are
 * written only on success.
 *
 * Threads. Any thread may call any function. Different threads may use
 * different communicators at the same time; one communicator, its requests
 * and its group belong to one thread at a time. dt_init, dt_finalize,
 * dt_ckpt_open and dt_ckpt_close are called while no other thread of the
 * program is in libdt, as is dt_reinit; a dt_ckpt_t belongs to one thread at a
 * time.
 *
 * Memory. Buffers belong to the caller. A blocking call borrows them until it
 * returns, an i-call until its request is complete, and both, with a stream of
 * a GPU, until the stream has executed them. */
#ifndef DT_H
#define DT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Results, grouped by the largest thing that is broken. */
typedef enum dt_result {
    DT_SUCCESS = 0,
    DT_IN_PROGRESS = 1, /* the request is not complete yet */
    /* this call: the next one may succeed */
    DT_ERR_INVALID_ARG = -1,
    DT_ERR_UNSUPPORTED = -2,
    DT_ERR_NOT_INITIALIZED = -3,
    DT_ERR_NO_MEMORY = -4,
    /* this checkpoint: training can go on */
    DT_ERR_NOT_FOUND = -20,
    DT_ERR_IO = -21,
    DT_ERR_NO_SPACE = -22,
    DT_ERR_CORRUPT = -23,
    DT_ERR_MISMATCH = -24, /* intact, but not of this program; or ranks that
                            * disagree about a collective (DT_CHECK) */
    DT_ERR_BUSY = -25,     /* another job has it */
    /* this communicator: every later call on it fails with the same result */
    DT_ERR_PROC_FAILED = -40,
    DT_ERR_TIMED_OUT = -41,
    /* this job: give up */
    DT_ERR_BOOTSTRAP = -60,
    DT_ERR_VERSION = -61, /* ranks or plugin of another version */
    DT_ERR_SYSTEM = -62,
} dt_result_t;

/* Element types. The values are part of the ABI. F8E4M3 and F8E5M2 are those
 * of "FP8 Formats for Deep Learning" (Micikevicius et al. 2022). */
typedef enum dt_dtype {
    DT_DTYPE_I8 = 0,
    DT_DTYPE_U8 = 1,
    DT_DTYPE_I32 = 2,
    DT_DTYPE_I64 = 3,
    DT_DTYPE_F16 = 4,
    DT_DTYPE_BF16 = 5,
    DT_DTYPE_F32 = 6,
    DT_DTYPE_F64 = 7,
    DT_DTYPE_F8E4M3 = 8,
    DT_DTYPE_F8E5M2 = 9,
} dt_dtype_t;

/* Reductions. AVG is the sum divided by the number of ranks; on integers the
 * quotient is truncated towards zero. Types of 8 and 16 bits are added in F32
 * within a node and rounded once per step between nodes; integers wrap. */
typedef enum dt_op {
    DT_OP_SUM = 0,
    DT_OP_MIN = 1,
    DT_OP_MAX = 2,
    DT_OP_AVG = 3,
    DT_OP_PROD = 4,
} dt_op_t;

typedef struct dt_comm *dt_comm_t;
typedef struct dt_request *dt_request_t;
typedef struct dt_ckpt *dt_ckpt_t;
typedef void *dt_stream_t; /* a GPU's stream: CUstream, cudaStream_t */
#define DT_STREAM_NONE ((dt_stream_t)0)

/* ---- errors ---- */

/* One line of text that goes with a result, without a newline; "" after
 * success. The functions of dt_topo.h fill the caller's, which may be NULL. */
struct dt_error {
    char text[512];
};

/* The name of a result in plain words, e.g. "process failed". Never NULL. */
const char *dt_strerror(dt_result_t result);

/* The error text of the last call of this thread that failed, one line without
 * a newline: what was wrong, what was expected, how to mend it. Never NULL;
 * valid until the thread's next call into libdt. */
const char *dt_last_error(void);

/* Size of one element in bytes, 0 if dtype is none. */
size_t dt_dtype_size(dt_dtype_t dtype);

/* ---- lifecycle ---- */

/* Join the job. Collective over all its ranks; blocks until all have come
 * (bounded by DT_TIMEOUT seconds, 600 unless set). Under a PMIx server
 * (srun) the ranks of the step form the world, otherwise the process is a
 * world of one. Errors: BOOTSTRAP, also when a rank dies before all have come;
 * VERSION, SYSTEM, TIMED_OUT, NO_MEMORY; INVALID_ARG when called twice. */
dt_result_t dt_init(void);

/* Leave the job: completes all open requests, then a barrier, then frees
 * everything, requests and communicators too. Collective: a rank
 * that ends after it is no failure, whatever its exit code; one that ends
 * without it is. After PROC_FAILED or TIMED_OUT it does not wait for other
 * ranks. All ranks may call dt_init again; the process leaves its launcher when
 * it ends by exit or by returning from main. Errors: NOT_INITIALIZED;
 * INVALID_ARG while an engine of dt_grad.h is open; those of the requests and
 * the barrier: everything is freed all the same. */
dt_result_t dt_finalize(void);

/* The place of this rank. Node means what Slurm calls a node. Local rank and
 * local size count the ranks of this node, node rank is this node's place among
 * the nodes in order of their lowest rank. DT_ERR_NOT_INITIALIZED outside
 * dt_init .. dt_finalize. */
int dt_rank(void);
int dt_size(void);
int dt_local_rank(void);
int dt_local_size(void);
int dt_node_rank(void);
int dt_num_nodes(void);

/* ---- communicators ---- */

/* The communicator of all ranks, NULL outside dt_init .. dt_finalize. */
dt_comm_t dt_comm_world(void);

/* Make one communicator per color out of the ranks of comm, ordered by key,
 * then by rank in comm. color is >= 0, or DT_COLOR_NONE: this rank goes into
 * none, and *newcomm is NULL. Collective over comm, blocks. A rank can be in
 * 255 communicators at a time. Errors: INVALID_ARG, NO_MEMORY, those of the
 * collectives. */
#define DT_COLOR_NONE (-1)
dt_result_t dt_comm_split(dt_comm_t comm, int color, int key,
                          dt_comm_t *newcomm);

/* Make a communicator of n ranks of parent, of which ranks[i] gets number i.
 * Collective over these ranks alone, blocks; parent may be in use meanwhile.
 * All of them give the same ranks, and ranks that are in several new
 * communicators make them in the same order (MPI_Comm_create_group, with one
 * tag). A rank that is not among them need not call; if it does, *newcomm is
 * NULL. Errors: INVALID_ARG, NO_MEMORY, those of the collectives: TIMED_OUT
 * where one of them does not call. */
dt_result_t dt_comm_create(dt_comm_t parent, const int *ranks, int n,
                           dt_comm_t *newcomm);

/* Free a communicator, but not the world's. Collective over it: waits for its
 * open requests, then for all its ranks. NULL is fine. Errors: INVALID_ARG,
 * NO_MEMORY, MISMATCH: it can still be used; PROC_FAILED, TIMED_OUT: it is
 * freed all the same. */
dt_result_t dt_comm_destroy(dt_comm_t comm);

/* This rank's number in comm, and how many ranks there are;
 * DT_ERR_NOT_INITIALIZED for NULL. */
int dt_comm_rank(dt_comm_t comm);
int dt_comm_size(dt_comm_t comm);

/* ---- memory ---- */

/* size bytes (> 0) of zeroed memory, aligned to a page, which the other ranks
 * of the node can read and write in place: collectives on it move each byte
 * once instead of twice. Not collective; any buffer of any call may lie in it.
 * Errors: NOT_INITIALIZED, INVALID_ARG, NO_MEMORY, SYSTEM. */
dt_result_t dt_mem_alloc(size_t size, void **ptr);

/* Free it, when no request uses it any more. NULL is fine. Memory of
 * dt_mem_alloc that is left is freed by dt_finalize. Errors: INVALID_ARG
 * when it did not come from dt_mem_alloc. */
dt_result_t dt_mem_free(void *ptr);

/* Pin size bytes of the caller's own memory for the network, so that the first
 * transfer is as fast as the next; to be undone before the memory is freed.
 * Where no network needs it this does nothing. Errors: NOT_INITIALIZED,
 * INVALID_ARG (also a range registered already, or not registered), NO_MEMORY
 * (see ulimit -l), SYSTEM. */
dt_result_t dt_mem_register(void *ptr, size_t size);
dt_result_t dt_mem_deregister(void *ptr);

/* ---- collectives ----
 *
 * All ranks of comm call the same collectives in the same order with the same
 * count, dtype, op and root. Counts are elements and may be 0, which returns
 * at once. Buffers overlap wholly where "in place" is said, else not at all.
 * The order of the reduction depends only on the communicator, the placement
 * and the shape, so the result is bitwise the same on every rank and in every
 * run. MIN and MAX give NaN where an operand is.
 * DT_CHECK=1 makes every collective compare its arguments between the ranks
 * first, and whether the buffers are on a GPU, and the error names the rank
 * that differs; without it, ranks that disagree time out.
 *
 * Errors: INVALID_ARG, UNSUPPORTED, NOT_INITIALIZED, NO_MEMORY; PROC_FAILED
 * when a rank is gone (any, where the launcher tells of it, else one that this
 * rank waits for), TIMED_OUT when this rank waited (a blocking call or
 * dt_wait; not dt_test) and nothing moved for DT_TIMEOUT seconds:
 * all communicators are then dead on all ranks and the contents of the receive
 * buffers are undefined. MISMATCH only with DT_CHECK=1.
 *
 * GPU memory. Both buffers of a call may be in the memory of one GPU, on all
 * ranks of the call; then stream is one of that GPU, or DT_STREAM_NONE, its
 * default stream. Everything is done in the order of the stream: after what was
 * put there before, and before what is put there later; no call waits for the
 * GPU. A blocking call with a stream returns when it is put there, as do those
 * of NCCL; on DT_STREAM_NONE it returns when it is done. The request of an
 * i-call is complete when the result is there; with a stream it may be NULL,
 * and on DT_STREAM_NONE it alone tells. Between the start and the end of a
 * group nothing waits for each other, which sends and receives on one stream
 * need. dt_barrier and a rank's dt_alltoallv of nothing are for the GPU when
 * they have a stream. Buffers are aligned to their elements. Managed memory
 * counts as the GPU's with a stream, else as the host's.
 *
 * A communicator works on the GPU of its first such call, which is collective,
 * but for send and receive, and blocks as dt_comm_split does, with another
 * communicator of libdt's own: so make it in the same order everywhere, and
 * before capturing a graph. INVALID_ARG tells of buffers that are mixed,
 * elsewhere than the stream, freed (where there is a stream) or shorter than
 * the call; UNSUPPORTED of a stream without a GPU, and of a capture of what
 * goes through the host: uneven forms, messages, and ranks whose GPUs do not
 * reach each other. After SYSTEM, the driver's errors, and TIMED_OUT, which
 * here comes also when nobody waits, all fails as after PROC_FAILED; streams
 * go on then, with undefined contents.
 *
 * DT_GPU_WAY=nccl, or a file of DT_TUNE that says so of some: collectives go by
 * NCCL, where that is to be had, and where it has them. Then a call may wait,
 * on the host, until NCCL has connected the ranks; sums have the same bits on
 * all ranks, but they are NCCL's, whatever those are from run to run; and two
 * communicators of one GPU that are under way together are begun in the same
 * order on all ranks.
 *
 * Algorithms: inside the node through shared memory, between the nodes each
 * local rank with its peers of equal local rank, pipelined by chunks;
 * doc/collectives.md tells which, when, and from where. */

/* recvbuf[i] = op over ranks of sendbuf[i], count elements each. In place
 * when sendbuf == recvbuf. */
dt_result_t dt_allreduce(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                         dt_stream_t stream);

/* recvbuf[i] = postscale * op over ranks of prescale * sendbuf[i]. SUM or AVG
 * of a floating-point type; the factors are applied in F32 (F64 on F64), the
 * first before anything of 8 or 16 bits is rounded. */
dt_result_t dt_allreduce_scaled(const void *sendbuf, void *recvbuf,
                                size_t count, dt_dtype_t dtype, dt_op_t op,
                                double prescale, double postscale,
                                dt_comm_t comm, dt_stream_t stream);

/* As dt_allreduce, but only root gets it; elsewhere recvbuf is ignored. */
dt_result_t dt_reduce(const void *sendbuf, void *recvbuf, size_t count,
                      dt_dtype_t dtype, dt_op_t op, int root, dt_comm_t comm,
                      dt_stream_t stream);

/* buf of root, count elements, to all. */
dt_result_t dt_bcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                     dt_comm_t comm, dt_stream_t stream);

/* recvbuf holds size * count elements: rank r's sendbuf at r * count. In
 * place when sendbuf == recvbuf + rank * count elements. */
dt_result_t dt_allgather(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream);

/* The same with counts[r] elements of rank r, at displs[r]; both arrays have
 * size entries, equal on all ranks, and are read during the call only. In
 * place when sendbuf == recvbuf + displs[rank] elements. */
dt_result_t dt_allgatherv(const void *sendbuf, void *recvbuf,
                          const size_t *counts, const size_t *displs,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream);

/* sendbuf holds size * count elements: the sum of block r goes to rank r's
 * recvbuf, count elements. In place when recvbuf == sendbuf + rank * count. */
dt_result_t dt_reduce_scatter(const void *sendbuf, void *recvbuf, size_t count,
                              dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                              dt_stream_t stream);

/* The same with counts[r] elements for rank r, one behind the other. */
dt_result_t dt_reduce_scatterv(const void *sendbuf, void *recvbuf,
                               const size_t *counts, dt_dtype_t dtype,
                               dt_op_t op, dt_comm_t comm, dt_stream_t stream);

/* Block r of sendbuf, count elements, becomes block rank of rank r's recvbuf.
 * Not in place. */
dt_result_t dt_alltoall(const void *sendbuf, void *recvbuf, size_t count,
                        dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream);

/* The same: sendcounts[r] elements at senddispls[r] go to rank r, and
 * recvcounts[r] at recvdispls[r] come from it. What r sends is what the other
 * expects. */
dt_result_t dt_alltoallv(const void *sendbuf, const size_t *sendcounts,
                         const size_t *senddispls, void *recvbuf,
                         const size_t *recvcounts, const size_t *recvdispls,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream);

/* As dt_allgather, but only root gets it; elsewhere recvbuf is ignored. */
dt_result_t dt_gather(const void *sendbuf, void *recvbuf, size_t count,
                      dt_dtype_t dtype, int root, dt_comm_t comm,
                      dt_stream_t stream);

/* Block r of root's sendbuf to rank r's recvbuf, count elements each; in place
 * at root when recvbuf == sendbuf + rank * count. Elsewhere sendbuf is
 * ignored. */
dt_result_t dt_scatter(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, int root, dt_comm_t comm,
                       dt_stream_t stream);

/* Returns when all ranks have called it. */
dt_result_t dt_barrier(dt_comm_t comm, dt_stream_t stream);

/* count elements to, and from, another rank of comm. What two ranks exchange
 * arrives in the order in which it was sent. A send may return before the
 * other has received, or only then: send and receive at the same time in a
 * group. */
dt_result_t dt_send(const void *buf, size_t count, dt_dtype_t dtype, int peer,
                    dt_comm_t comm, dt_stream_t stream);
dt_result_t dt_recv(void *buf, size_t count, dt_dtype_t dtype, int peer,
                    dt_comm_t comm, dt_stream_t stream);

/* Blocking calls of this thread between start and end only begin; end waits
 * for all of them and gives the first error. Groups nest: the outermost end
 * waits. dt_comm_split, dt_comm_create and dt_comm_destroy cannot be in a
 * group. Errors of end: INVALID_ARG without a start, and those of the calls. */
dt_result_t dt_group_start(void);
dt_result_t dt_group_end(void);

/* The same, started but not waited for. On success *request is to be given to
 * dt_wait, or to dt_test until that is no longer DT_IN_PROGRESS. Requests of
 * one communicator may be outstanding together and complete in any order.
 * Progress is made inside libdt calls of any thread, or, with
 * DT_PROGRESS=thread, also by a thread of libdt's own, which sleeps when
 * nothing is outstanding. */
dt_result_t dt_iallreduce(const void *sendbuf, void *recvbuf, size_t count,
                          dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                          dt_stream_t stream, dt_request_t *request);
dt_result_t dt_iallreduce_scaled(const void *sendbuf, void *recvbuf,
                                 size_t count, dt_dtype_t dtype, dt_op_t op,
                                 double prescale, double postscale,
                                 dt_comm_t comm, dt_stream_t stream,
                                 dt_request_t *request);
dt_result_t dt_ireduce(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, dt_op_t op, int root, dt_comm_t comm,
                       dt_stream_t stream, dt_request_t *request);
dt_result_t dt_ibcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                      dt_comm_t comm, dt_stream_t stream,
                      dt_request_t *request);
dt_result_t dt_iallgather(const void *sendbuf, void *recvbuf, size_t count,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                          dt_request_t *request);
dt_result_t dt_iallgatherv(const void *sendbuf, void *recvbuf,
                           const size_t *counts, const size_t *displs,
                           dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                           dt_request_t *request);
dt_result_t dt_ireduce_scatter(const void *sendbuf, void *recvbuf, size_t count,
                               dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                               dt_stream_t stream, dt_request_t *request);
dt_result_t dt_ireduce_scatterv(const void *sendbuf, void *recvbuf,
                                const size_t *counts, dt_dtype_t dtype,
                                dt_op_t op, dt_comm_t comm, dt_stream_t stream,
                                dt_request_t *request);
dt_result_t dt_ialltoall(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                         dt_request_t *request);
dt_result_t dt_ialltoallv(const void *sendbuf, const size_t *sendcounts,
                          const size_t *senddispls, void *recvbuf,
                          const size_t *recvcounts, const size_t *recvdispls,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream,
                          dt_request_t *request);
dt_result_t dt_igather(const void *sendbuf, void *recvbuf, size_t count,
                       dt_dtype_t dtype, int root, dt_comm_t comm,
                       dt_stream_t stream, dt_request_t *request);
dt_result_t dt_iscatter(const void *sendbuf, void *recvbuf, size_t count,
                        dt_dtype_t dtype, int root, dt_comm_t comm,
                        dt_stream_t stream, dt_request_t *request);
dt_result_t dt_ibarrier(dt_comm_t comm, dt_stream_t stream,
                        dt_request_t *request);
dt_result_t dt_isend(const void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_comm_t comm, dt_stream_t stream, dt_request_t *request);
dt_result_t dt_irecv(void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_comm_t comm, dt_stream_t stream, dt_request_t *request);

/* Complete a request: its result, or for dt_test DT_IN_PROGRESS. Both free a
 * completed request and set *request to NULL; a NULL request is complete. */
dt_result_t dt_wait(dt_request_t *request);
dt_result_t dt_test(dt_request_t *request);

/* ---- going on after a loss ----
 *
 * In an elastic job (dt-run --elastic, srun --dt-elastic) the loss of a rank
 * does not end the others: their calls return PROC_FAILED, and dt_reinit makes
 * a world of those that live. This is the global restart of Reinit (Laguna et
 * al. 2016, "Evaluating and extending User-Level Fault Tolerance in MPI
 * applications") without a new process: a loss concerns all communicators,
 * which all end with the world. dt_elastic_run puts the state of a training
 * back, too, and is what most programs want. */

/* Leave the world, whole or broken, and join the one of the ranks that live:
 * survivors and, where the launcher replaces ranks, the replacements, whose
 * dt_init it meets. Collective over all of them; a rank that is still in
 * another call gets PROC_FAILED there, and calls this, too. Blocks until all
 * have come (bounded by DT_TIMEOUT), also over further losses. Then dt_rank,
 * dt_size and dt_comm_world are new, ranks being in the order they had;
 * requests and communicators are freed; memory of dt_mem_alloc keeps its
 * address and contents, but moves each byte twice from now on; registered
 * memory stays registered. Engines of dt_grad.h and checkpoints are closed
 * before. The result is the same on all ranks that get one. Errors:
 * UNSUPPORTED: the job is not elastic; NOT_INITIALIZED, INVALID_ARG: nothing
 * has changed. PROC_FAILED: fewer live than the job needs; TIMED_OUT,
 * BOOTSTRAP, SYSTEM, NO_MEMORY: all is as after dt_finalize. */
dt_result_t dt_reinit(void);

/* The ranks of comm that the launcher has reported as lost. *count: the room
 * in ranks, then how many there are. After PROC_FAILED there may be none, where
 * another rank has left the world. Never blocks. Errors: NOT_INITIALIZED,
 * INVALID_ARG. */
dt_result_t dt_comm_get_failed(dt_comm_t comm, int *ranks, int *count);

/* Let all calls on comm, and on all other communicators of this world, fail
 * with PROC_FAILED from now on, on all ranks, for whatever reason this one has
 * (MPIX_Comm_revoke of ULFM, Bland et al. 2013). Not collective. */
dt_result_t dt_comm_revoke(dt_comm_t comm);

/* The state of a training: memory that all ranks have alike, as parameters, the
 * state of an optimizer, the number of the step and what tells which samples
 * come next. A commit is a copy in the memory of each rank, so the loss of all
 * ranks but one loses nothing. A dt_state_t belongs to one thread at a time. */
typedef struct dt_state *dt_state_t;

/* Errors: INVALID_ARG, NO_MEMORY. Not collective. */
dt_result_t dt_state_create(dt_state_t *state);

/* Name bytes of data, of the host, which are borrowed until dt_state_destroy.
 * All before the first commit; all ranks the same, in the same order. Names are
 * unique, of at most 200 bytes. Not collective. Errors: INVALID_ARG,
 * NO_MEMORY. */
dt_result_t dt_state_register(dt_state_t state, const char *name, void *data,
                              size_t bytes);

/* Keep a copy of everything as it is now. Not collective, but all ranks commit
 * after the same steps. Error: NO_MEMORY. */
dt_result_t dt_state_commit(dt_state_t state);

/* Put everything back to the last commit of this rank. NOT_FOUND: there is
 * none. Not collective. */
dt_result_t dt_state_rollback(dt_state_t state);

/* Put everything, on all ranks, to the newest commit that any of them has;
 * where none has one, to what rank 0 has, and commit that. Collective over the
 * world, blocks. Errors: MISMATCH: other names or sizes on some rank; NO_MEMORY
 * and those of the collectives: this rank's commit is as it was. */
dt_result_t dt_state_sync(dt_state_t state);

/* NULL is fine. Not collective. */
void dt_state_destroy(dt_state_t state);

/* Train: dt_state_sync, then fn(state, arg), and whenever either returns
 * PROC_FAILED dt_reinit, dt_state_sync and fn again, until it returns something
 * else, which is returned. fn trains from the step that the state says, commits
 * after a step or some, closes what it opens on every way out, and returns the
 * errors of the calls. A line on stderr says who was lost. Collective over the
 * world, blocks. Errors: those of dt_state_sync, dt_reinit and fn; PROC_FAILED:
 * fewer ranks live than the job needs, or it is not elastic. */
dt_result_t dt_elastic_run(dt_result_t (*fn)(dt_state_t state, void *arg),
                           dt_state_t state, void *arg);

/* ---- preemption and restart ---- */

/* Does this rank have notice to leave? The notice bit goes along with
 * dt_allreduce and dt_barrier on the world, without a message of its own. It is
 * the same on all ranks that have completed the same of those calls: set if any
 * rank had its notice when it started them. Those on GPU memory do not carry
 * it: a program that has no others calls dt_barrier without a stream. Before
 * the first it is false.
 *
 * A rank knows by SIGTERM (Slurm's preemption, scancel, time limit), unless the
 * program has its own handler, which then stays; by the file that DT_NOTICE
 * names, when its first byte is not 0; and by the clock, when dt_time_left is
 * less than one step, one checkpoint (as far as they have been measured), and a
 * minute or a tenth of the time there was, whichever is less. The first call,
 * or dt_ckpt_open(), arms all three. To be called once per step, which is how a
 * step is measured. Never blocks. */
bool dt_should_exit(void);

/* How often Slurm has started this job before: 0 on the first run. */
int dt_restart_count(void);

/* The name of this training run, the same after each requeue. Never NULL;
 * owned by libdt. */
const char *dt_run_id(void);

/* The exit code that asks the batch script to requeue the job. */
#define DT_EXIT_REQUEUE 75

/* Seconds until Slurm ends this job, as was planned when it started; 0 when
 * that has passed, a negative number if there is no limit or nobody knows it.
 * Never blocks. */
double dt_time_left(void);

/* ---- checkpoints ----
 *
 * A checkpoint is a directory `step-N` under the checkpoint directory, with
 * safetensors files of each rank and manifest.json, whose presence means that
 * all of it was written and is on disk. doc/checkpoint.md draws the format.
 * All dt_ckpt calls but those that say otherwise are collective over the world,
 * with equal arguments but for the data, and block. A thread of libdt's own
 * writes while the program goes on.
 *
 * Before a tensor on a GPU (or in managed memory) is saved or loaded, all that
 * was put on that GPU is waited for, on whatever stream, as by
 * cuCtxSynchronize: what is saved has the steps that were put there before, and
 * the program may put more there as soon as the call returns. What its streams
 * still copy to memory of the host the program waits for itself. */

enum {
    /* The tensor is the same on all ranks: written once, loaded by all,
     * whatever the world size. Without it, it is this rank's own, and loads
     * only on the same number of ranks. */
    DT_CKPT_REPLICATED = 1,
};

/* Open or create the checkpoint directory dir; NULL: that of --dt-ckpt
 * (DT_CKPT). It is on a file system that all nodes share, unless there is
 * --dt-ckpt-flush (DT_CKPT_FLUSH), which then is: dir may be on each node's own
 * disk. keep: how many complete checkpoints to keep (at least 1; older ones are
 * removed after a successful save; 0 keeps all; -1: as --dt-ckpt-keep says,
 * else 2). One job at a time: another that has it open is an error. A
 * shared directory that is mounted read-only is loaded from, by any number of
 * jobs, and a save into it fails with IO. Errors: INVALID_ARG, BUSY, IO,
 * NO_MEMORY, NOT_INITIALIZED. */
dt_result_t dt_ckpt_open(const char *dir, int keep, dt_ckpt_t *ckpt);

/* Name the memory to save and load: data (ndim dimensions, shape in elements,
 * row-major; of the host or of a GPU) is borrowed until dt_ckpt_close. Names
 * are unique, printable, at most 200 bytes. Not collective, but every rank
 * names the same tensors in the same order. Errors: INVALID_ARG, NO_MEMORY. */
dt_result_t dt_ckpt_add_tensor(dt_ckpt_t ckpt, const char *name, void *data,
                               dt_dtype_t dtype, int ndim, const int64_t *shape,
                               unsigned flags);

/* The same for a part of one tensor that is spread over the ranks: shape is
 * that of the whole, data holds extent[ndim] elements, row-major, which begin
 * at offset[ndim] in it. The parts of all ranks cover the whole; the same part
 * on several ranks is the same and is written once; other overlaps are an error
 * of dt_ckpt_save. An extent of 0 is no part. It loads on any number of ranks,
 * cut in any other way. */
dt_result_t dt_ckpt_add_slice(dt_ckpt_t ckpt, const char *name, void *data,
                              dt_dtype_t dtype, int ndim, const int64_t *shape,
                              const int64_t *offset, const int64_t *extent);

/* Save these bytes, too, which are copied now: the state of a sampler, of a
 * random number generator. Again with the same name, they are replaced; their
 * number may be another. Not collective, but every rank names the same. */
dt_result_t dt_ckpt_set_blob(dt_ckpt_t ckpt, const char *name, const void *data,
                             size_t bytes, unsigned flags);

/* What was loaded, or set last. *bytes is the room in data, then how many there
 * are; data NULL only asks. This rank's own: on another number of ranks, that
 * of the rank with the same number. Errors: NOT_FOUND if there was none,
 * INVALID_ARG if the room does not do. Not collective. */
dt_result_t dt_ckpt_get_blob(dt_ckpt_t ckpt, const char *name, void *data,
                             size_t *bytes);

/* Write everything as step-N. Either the checkpoint is complete on disk on
 * return, or every rank gets the same error and nothing of it is left; older
 * checkpoints are never touched before the new one is complete. Errors: IO,
 * NO_SPACE, and those of the collectives. */
dt_result_t dt_ckpt_save(dt_ckpt_t ckpt, int64_t step);

/* The same, but return when all is copied, into memory of the node that
 * outlives this process; the rest is written in the background, and the program
 * may change its tensors. One at a time: waits for the one before, and returns
 * its error. When the disk is full, that is said once on stderr and is no error
 * here: the last good one stays, the next is tried. */
dt_result_t dt_ckpt_save_async(dt_ckpt_t ckpt, int64_t step);

/* Wait until what save_async began is on disk. Returns how it ended. */
dt_result_t dt_ckpt_wait(dt_ckpt_t ckpt);

/* Is it time for a checkpoint after this step? The same answer on all ranks:
 * yes when the job has notice to leave (dt_should_exit), when the job's time
 * runs out, and when the interval of --dt-ckpt-interval has passed (DT_CKPT_
 * INTERVAL; auto: sqrt(2 * cost * mean time between failures), J. Young 1974).
 * To be called after each step. */
bool dt_ckpt_need(dt_ckpt_t ckpt, int64_t step);

/* The step of the newest complete checkpoint. NOT_FOUND if there is none. */
dt_result_t dt_ckpt_latest(dt_ckpt_t ckpt, int64_t *step);

/* Load the newest complete checkpoint into the tensors and set *step: from the
 * memory of the nodes if it is still there, else from their disks, else from
 * what all share. One that is torn or damaged is passed over for the next older
 * one, with a warning on stderr (rank 0) that says why. Errors: NOT_FOUND if
 * there is none (start afresh); CORRUPT if there are some and all are damaged;
 * MISMATCH if the newest intact one is of another model (names, types, shapes)
 * or has per-rank tensors and another world size, VERSION if a newer slurm-dt
 * wrote it: the tensors are then untouched. After any other failure, their
 * contents are undefined. */
dt_result_t dt_ckpt_load(dt_ckpt_t ckpt, int64_t *step);

/* Wait for what save_async began, then close; NULL is fine. Not collective. */
void dt_ckpt_close(dt_ckpt_t ckpt);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
