/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pairwise.h - latency and bandwidth between all pairs of nodes, and between
 * all pairs of ranks of each node. */
#ifndef DT_TOOLS_BENCH_PAIRWISE_H
#define DT_TOOLS_BENCH_PAIRWISE_H

#include "options.h"
#include "pairwise/pairs.h"

/* Measure and print. Collective. */
dt_result_t pairwise_run(const struct options *options, const struct job *job,
                         struct dt_error *err);

/* ---- gpu_pairs.c ---- */

/* Each rank of a node reads the GPU memory of each other rank by CUDA IPC.
 * Collective. */
dt_result_t pairwise_gpu_run(const struct options *options,
                             const struct job *job, struct dt_error *err);

/* ---- stream.c ---- */

/* Measure the bandwidth from this rank to peer (sends), or from peer to this
 * rank. *gbs is set on the sending side. Takes some tens of milliseconds,
 * longer on a slow link. buf has STREAM_BYTES. */
enum { STREAM_BYTES = 1 << 20 };
dt_result_t stream(const struct job *job, char *buf, int peer, bool sends,
                   double *gbs, struct dt_error *err);

/* ---- pair_matrix.c ---- */

/* The measurements between nodes, and between the ranks of each node. */
struct matrices {
    const struct job *job;
    struct pairs nodes;
    struct pairs *within; /* [job->nodes]; n is 0 where a node has one rank */
    bool alone;
};

void matrices_print(FILE *out, const struct matrices *matrices);
dt_result_t matrices_json(FILE *out, const struct matrices *matrices,
                          struct dt_error *err);

/* ---- gpu_pair_matrix.c ---- */

/* One measurement: a rank reads the memory of another one of its node. */
struct gpu_pair {
    double us, gbs;
    char why[256]; /* the reason why it cannot; "": it can */
};

/* pair is [job->size * most]: a row per rank, a column per local rank. */
struct gpu_pairs {
    const struct job *job;
    int most; /* the largest number of ranks on a node */
    const struct gpu_pair *pair;
    char (*bus)[24]; /* [job->size] */
};

void gpu_pairs_print(FILE *out, const struct gpu_pairs *pairs, bool alone);
dt_result_t gpu_pairs_json(FILE *out, const struct gpu_pairs *pairs,
                           struct dt_error *err);

#endif
