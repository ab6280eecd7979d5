/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* limit.h - the limit of this machine, measured in the same run.
 *
 * The limit of an operation is a latency plus a transfer time. The latency is
 * that of a flag from core to core, plus log2(nodes) short messages between
 * nodes. The transfer time is the longer of two: copying once what each rank
 * reads and writes, all ranks of the node at the same time; and sending what
 * has to leave a node, all its ranks at the same time. */
#ifndef DT_TOOLS_BENCH_LIMIT_H
#define DT_TOOLS_BENCH_LIMIT_H

#include "measure/measure.h"

/* In us and GB/s, of the slowest node; 0: not applicable here. */
struct limit {
    double core_us;     /* a flag, one way, between two ranks of a node */
    size_t copy_bytes;  /* the size of the copies */
    double copy;        /* of each rank, all ranks at the same time */
    double link_us;     /* a short message, one way, between two nodes */
    double link, rails; /* out of a node, while as much comes in: by one of its
                         * ranks, by all */
};

/* Measure the limits, for up to a second. Overwrites bench's buffers.
 * Collective.
 */
dt_result_t limit_measure(const struct bench *bench, struct limit *limit,
                          struct dt_error *err);

/* The limit of a row, in us; measures a copy of the row's size. Collective. */
dt_result_t limit_row(const struct bench *bench, const struct limit *limit,
                      const struct row *row, double *us, struct dt_error *err);

void limit_print(FILE *out, const struct limit *limit);

#endif
