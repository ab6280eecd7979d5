/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pairwise.h - each node with each other, and each rank of a node. */
#ifndef DT_TOOLS_BENCH_PAIRWISE_H
#define DT_TOOLS_BENCH_PAIRWISE_H

#include "options.h"
#include "pairwise/pairs.h"

/* Measure and print. Collective. */
dt_result_t pairwise_run(const struct options *options, const struct job *job,
                         struct dt_error *err);

/* ---- gpu_pairs.c ---- */

/* Each rank of a node reads the GPU memory of each other, from process to
 * process. Collective. */
dt_result_t pairwise_gpu_run(const struct options *options,
                             const struct job *job, struct dt_error *err);

/* ---- stream.c ---- */

/* GB/s from this rank to peer, which receives meanwhile, or the other way
 * round: set on the side that sends. The best of some tens of milliseconds;
 * long on a slow link. buf: STREAM_BYTES. */
enum { STREAM_BYTES = 1 << 20 };
dt_result_t stream(const struct job *job, char *buf, int peer, bool sends,
                   double *gbs, struct dt_error *err);

/* ---- pair_matrix.c ---- */

/* What was measured among the nodes, and among the ranks of each node. */
struct matrices {
    const struct job *job;
    struct pairs nodes;
    struct pairs *within; /* [job->nodes], n 0 where there is one rank */
    bool alone;
};

void matrices_print(FILE *out, const struct matrices *matrices);
dt_result_t matrices_json(FILE *out, const struct matrices *matrices,
                          struct dt_error *err);

/* ---- gpu_pair_matrix.c ---- */

/* What two ranks of a node have found; the first reads the second's memory. */
struct gpu_pair {
    double us, gbs;
    char why[256]; /* it cannot; "": it can */
};

/* [job->size * most]: the rows of all ranks, a place for each local rank. */
struct gpu_pairs {
    const struct job *job;
    int most; /* ranks of a node */
    const struct gpu_pair *pair;
    char (*bus)[24]; /* [job->size] */
};

void gpu_pairs_print(FILE *out, const struct gpu_pairs *pairs, bool alone);
dt_result_t gpu_pairs_json(FILE *out, const struct gpu_pairs *pairs,
                           struct dt_error *err);

#endif
