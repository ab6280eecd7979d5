/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bench.h - what all parts of dt-bench share: the job, buffers, operations and
 * results.
 *
 * A function that is marked "collective" is called by all ranks and returns the
 * same result on all of them. Only the ranks that caused an error set its text.
 * Functions that print do so on rank 0 only; main() checks the stream for
 * errors once, at the end. */
#ifndef DT_TOOLS_BENCH_H
#define DT_TOOLS_BENCH_H

#include <stdio.h>

#include "base/error.h"
#include "common/progress.h"
#include "common/streams.h"

/* ---- text.c: errors of libdt, and numbers with their units ---- */

/* Set err to the text of result, an error that libdt returned; returns result.
 */
dt_result_t fail_in_libdt(struct dt_error *err, dt_result_t result);

/* Format bytes ("64 KiB"), microseconds ("12.3 us") and GB/s ("4.56 GB/s").
 * Return text. */
char *size_text(char text[32], size_t bytes);
char *time_text(char text[32], double us);
char *rate_text(char text[32], double gbs);

/* ---- job.c: the ranks of the job ---- */

struct place {
    char host[64]; /* the node's name */
    char cpus[64]; /* its CPU affinity, "0-3,8"; "..." where it is cut */
    char gpus[32]; /* its own GPUs, from --dt-gpus; "": unknown */
    char nics[64];
    int32_t pid, node, local_rank;
};

struct job {
    dt_comm_t comm;
    int rank, size, node, nodes, local_rank, local_size;
    int least_local, most_local; /* the fewest, the most ranks on a node */
    struct place *place;         /* [size] */
    int *first;                  /* [nodes]: the node leader's rank */
};

/* Collective, after dt_init(). The caller frees job with job_clear(). */
dt_result_t job_make(struct job *job, struct dt_error *err);
void job_clear(struct job *job);

/* The rank with this local rank on this node; -1: there is none. */
int job_rank_of(const struct job *job, int node, int local_rank);
const char *job_node_name(const struct job *job, int node);

/* Collective. job_max and job_sum reduce value[n] over all ranks, in place.
 * job_agree returns the worst of the results that the ranks had. */
dt_result_t job_max(const struct job *job, double *value, size_t n,
                    struct dt_error *err);
dt_result_t job_sum(const struct job *job, double *value, size_t n,
                    struct dt_error *err);
dt_result_t job_agree(const struct job *job, dt_result_t result,
                      struct dt_error *err);
dt_result_t job_barrier(const struct job *job, struct dt_error *err);

/* ---- buffers.c ---- */

/* The kind of memory that buffers are in, as --mem names it. */
enum memory { MEMORY_PRIVATE, MEMORY_REGISTERED, MEMORY_CUDA };
const char *memory_name(enum memory memory);

struct gpu;

/* Two page-aligned buffers of `bytes` each. A guard zone follows each; a write
 * to it is an error of the collective. With GPU memory the host's buffers are
 * filled and verified, and libdt works on copies of them on the GPU. */
struct buffers {
    char *a, *b;
    size_t bytes;
    enum memory memory;
    struct gpu *gpu;
    char *gpu_a, *gpu_b;
};

/* Collective; all ranks return the same error when one has too little memory.
 */
dt_result_t buffers_make(struct buffers *buffers, const struct job *job,
                         size_t bytes, enum memory memory,
                         struct dt_error *err);
void buffers_clear(struct buffers *buffers);

/* The address that libdt is given for a pointer into a or b; and the stream
 * that its calls are put on. */
void *buffers_place(const struct buffers *buffers, const void *ptr);
dt_stream_t buffers_stream(const struct buffers *buffers);

/* Copy the first bytes of both buffers to the GPU; copy them back, with the
 * guard zones; wait for the stream. All three do nothing for host memory. */
dt_result_t buffers_load(const struct buffers *buffers, size_t bytes,
                         struct dt_error *err);
dt_result_t buffers_fetch(const struct buffers *buffers, size_t bytes,
                          struct dt_error *err);
dt_result_t buffers_finish(const struct buffers *buffers, struct dt_error *err);

/* Returns true if both guard zones are unchanged. */
bool buffers_intact(const struct buffers *buffers);

/* ---- operation.c ---- */

enum data { DATA_NONE, DATA_REDUCED, DATA_MOVED };

struct call {
    const void *send;
    void *recv;
    size_t count; /* the argument of the function */
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
    const struct job *job;
    dt_stream_t stream;
};

struct operation {
    const char *name;
    enum data data;
    bool rooted;
    bool inside, outside;            /* can it run in place; out of place */
    bool split;                      /* count is that of one rank's block */
    bool parts_sent, parts_received; /* which buffer has a block per rank */
    dt_result_t (*run)(const struct call *call);
};

/* operation_by_name returns NULL when there is none; operation_names lists them
 * for messages. */
const struct operation *operation_by_name(const char *name);
const char *operation_names(void);

/* The factor from algorithm bandwidth to bus bandwidth (nccl-tests,
 * PERFORMANCE.md). */
double operation_bus(const struct operation *operation, int ranks);

/* ---- one line of the table ---- */

struct row {
    size_t bytes, count; /* of the larger buffer; the call's argument */
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
};

struct timing {
    bool measured;
    size_t iters;
    double time_us, algbw, busbw; /* us, GB/s */
    double wrong;                 /* elements, all ranks; -1: not checked */
    bool detailed; /* the following are set: per iteration, slowest rank */
    double min_us, median_us, p99_us;
};

struct result {
    struct row row;
    struct timing outside, inside; /* out of place, in place */
    double limit_us;               /* 0: not requested */
};

/* The pause between two progress lines. */
enum { PROGRESS_US = 500000 };

/* ---- interrupt.c ---- */

/* Make ^C end the process at once. After interrupt_speaks(true) it prints a
 * line first, which rank 0 does. */
void interrupt_arm(void);
void interrupt_speaks(bool rank0);

#endif
