/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bench.h - what the parts of dt-bench share: the job, the request, results.
 *
 * A function that says "collective" is called by all ranks, and gives them
 * all the same result, but for the text: who has none is not to blame.
 * Functions that print write on rank 0 only, and leave errors of out to
 * main(), which looks at the end. */
#ifndef DT_TOOLS_BENCH_H
#define DT_TOOLS_BENCH_H

#include <stdio.h>

#include "dt.h"

/* ---- text.c: text for people ---- */

/* Fill err and return code. */
dt_result_t fail(struct dt_error *err, dt_result_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Fill err with what libdt has to say of result, a failure; returns it. */
dt_result_t fail_in_libdt(struct dt_error *err, dt_result_t result);

/* "dt-bench: ..." as a line of its own on standard error. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "64 KiB", "1 MiB", "100 B"; "12.3 us", "4.56 GB/s". Return text. */
char *size_text(char text[32], size_t bytes);
char *time_text(char text[32], double us);
char *rate_text(char text[32], double gbs);

/* "64K", "1G", "100" into *bytes; false when it is none, or too large. */
bool size_parse(const char *text, size_t *bytes);

/* ---- job.c: the ranks ---- */

struct place {
    char host[64]; /* the node's name */
    char cpus[64]; /* where the rank may run: "0-3,8", cut with "..." */
    char gpus[32]; /* its own, of --dt-gpus; "" unknown */
    char nics[64];
    int32_t pid, node, local_rank;
};

struct job {
    dt_comm_t comm;
    int rank, size, node, nodes, local_rank, local_size;
    int least_local;     /* ranks of the node that has fewest */
    struct place *place; /* [size] */
    int *first;          /* [nodes]: the rank of local rank 0 */
};

/* Collective, after dt_init(). job is to be freed by job_clear(). */
dt_result_t job_make(struct job *job, struct dt_error *err);
void job_clear(struct job *job);

/* The rank of a local rank of a node, -1 if there is none. */
int job_rank_of(const struct job *job, int node, int local_rank);
const char *job_node_name(const struct job *job, int node);

/* Collective. The largest of each over all ranks; the sum; the worst of the
 * results of something that each did for itself. */
dt_result_t job_max(const struct job *job, double *value, size_t n,
                    struct dt_error *err);
dt_result_t job_sum(const struct job *job, double *value, size_t n,
                    struct dt_error *err);
dt_result_t job_agree(const struct job *job, dt_result_t result,
                      struct dt_error *err);
dt_result_t job_barrier(const struct job *job, struct dt_error *err);

double now_us(void);

/* ---- buffers.c ---- */

/* Where buffers are; the names are those of --mem. */
enum memory { MEMORY_PRIVATE, MEMORY_REGISTERED, MEMORY_CUDA };
const char *memory_name(enum memory memory);

struct gpu;

/* Two buffers of `bytes` each on a page, with a zone behind each in which
 * nobody writes. With a GPU these are filled and looked at, and libdt works on
 * copies of them there. */
struct buffers {
    char *a, *b;
    size_t bytes;
    enum memory memory;
    struct gpu *gpu;
    char *gpu_a, *gpu_b;
};

/* Collective: the same error on all when one has not enough. */
dt_result_t buffers_make(struct buffers *buffers, const struct job *job,
                         size_t bytes, enum memory memory,
                         struct dt_error *err);
void buffers_clear(struct buffers *buffers);

/* What libdt is to be given for a pointer into a or b; and the stream. */
void *buffers_place(const struct buffers *buffers, const void *ptr);
dt_stream_t buffers_stream(const struct buffers *buffers);

/* The first bytes of both to where libdt works on them; back from there, with
 * the zones; wait until it is through. */
dt_result_t buffers_load(const struct buffers *buffers, size_t bytes,
                         struct dt_error *err);
dt_result_t buffers_fetch(const struct buffers *buffers, size_t bytes,
                          struct dt_error *err);
dt_result_t buffers_finish(const struct buffers *buffers, struct dt_error *err);

/* Is the zone behind each as it was? */
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
    bool inside, outside;            /* can it be in place, and otherwise? */
    bool split;                      /* count is a rank's part of a buffer */
    bool parts_sent, parts_received; /* which buffer has all parts */
    dt_result_t (*run)(const struct call *call);
};

/* NULL: no such operation. names: "allreduce, reduce, ...". */
const struct operation *operation_by_name(const char *name);
const char *operation_names(void);

/* What busbw is to algbw. */
double operation_bus(const struct operation *operation, int ranks);

/* ---- one line of the table ---- */

struct row {
    size_t bytes, count; /* of the larger buffer, and the argument */
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
};

struct timing {
    bool measured;
    size_t iters;
    double time_us, algbw, busbw; /* us, GB/s */
    double wrong;                 /* elements on all ranks; -1 not checked */
    bool detailed; /* each iteration by itself: the slowest rank in it */
    double min_us, median_us, p99_us;
};

struct result {
    struct row row;
    struct timing outside, inside; /* out of place, in place */
    double limit_us;               /* 0: not asked */
};

/* ---- signals and the terminal ---- */

/* From now on ^C ends the process at once, with a line if it is rank 0. */
void interrupt_arm(void);
void interrupt_speaks(bool rank0);

/* A line on standard error, if that is a terminal, that the next one replaces;
 * only what comes half a second after the one before is shown. */
struct progress {
    bool on, shown;
    double last;
};
void progress_start(struct progress *progress, bool rank0);
void progress_show(struct progress *progress, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void progress_clear(struct progress *progress);

#endif
