/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tune.h - the measured parameters of a machine: from which the costs of
 * algorithms are predicted, and by which way calls on GPU memory go.
 *
 * A text file, one `name = value` per line, `#` begins a comment: what
 * `dt-bench --tune` writes and DT_TUNE names. All ranks use those of rank 0. */
#ifndef DT_COLL_ENGINE_TUNE_H
#define DT_COLL_ENGINE_TUNE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "coll/engine/shape.h"

/* How a collective on GPU memory goes, as the words of DT_GPU_WAY: IPC means
 * through the host, where GPUs do not reach each other. */
enum dt_tune_way { DT_TUNE_IPC, DT_TUNE_NCCL, DT_TUNE_STAGED };
#define DT_TUNE_WAYS (DT_TUNE_STAGED + 1)
/* for messages: "expected " */
#define DT_TUNE_WAY_WORDS "ipc, nccl or staged"

/* "ipc" and so on into *way; false when it is none. */
bool dt_tune_way(const char *name, enum dt_tune_way *way);

/* Up to so many bytes of a rank's larger buffer it goes one way, above another;
 * by that of long ones, too, where ranks have different counts. */
struct dt_tune_rule {
    uint64_t upto;
    int32_t brief, lengthy; /* enum dt_tune_way */
};

/* Of communicators inside a node, and of others; but for SEND and RECV. */
enum dt_tune_scope { DT_TUNE_NODE, DT_TUNE_NET };
#define DT_TUNE_SCOPES (DT_TUNE_NET + 1)
#define DT_TUNE_COLLS  (DT_COLL_SCATTER + 1)

/* Seconds, and seconds per byte. */
struct dt_tune {
    double node_latency; /* a flag from one core to another */
    double node_byte;    /* copy, into or out of shared memory */
    double fold_byte;    /* per input of a reduction */
    double net_latency;  /* a short message between nodes */
    double net_byte;     /* a long one, on one rail */
    double task;         /* what any task of a schedule costs */
    struct dt_tune_rule gpu[DT_TUNE_SCOPES][DT_TUNE_COLLS];
};

extern const struct dt_tune dt_tune_default;

/* Read a file; names that are missing keep what *tune holds. Errors: IO;
 * INVALID_ARG names the file, the line and what was expected. */
dt_result_t dt_tune_read(const char *path, struct dt_tune *tune,
                         struct dt_error *err);

/* Write one that dt_tune_read reads. Error IO. */
dt_result_t dt_tune_write(FILE *file, const struct dt_tune *tune,
                          struct dt_error *err);

#endif
