/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* limit.h - what this machine can do at best, measured in the same run.
 *
 * No operation is done sooner than a flag goes from core to core, or a short
 * message from node to node as often as the number of nodes doubles, plus the
 * longer of: copying once what each rank reads and writes, all ranks of the
 * node at once; and sending what must leave a node, all its ranks at once. */
#ifndef DT_TOOLS_BENCH_LIMIT_H
#define DT_TOOLS_BENCH_LIMIT_H

#include "measure/measure.h"

/* us and GB/s; 0: there is no such thing here. The worst node counts. */
struct limit {
    double core_us;     /* a flag, one way, between two ranks of a node */
    size_t copy_bytes;  /* what was copied for the next */
    double copy;        /* each rank copies, all at once */
    double link_us;     /* a short message, one way, between two nodes */
    double link, rails; /* out of a node, while as much comes in: by one of its
                         * ranks, by all */
};

/* Collective, and measures for up to a second. Uses bench's buffers. */
dt_result_t limit_measure(const struct bench *bench, struct limit *limit,
                          struct dt_error *err);

/* The least time of a row, in us, and a copy of that size measured for it.
 * Collective. */
dt_result_t limit_row(const struct bench *bench, const struct limit *limit,
                      const struct row *row, double *us, struct dt_error *err);

void limit_print(FILE *out, const struct limit *limit);

#endif
