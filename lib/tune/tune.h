/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tune.h - the tuning parameters of a machine. libdt predicts the cost of
 * algorithms from them, and chooses the way of collectives on GPU memory.
 *
 * They are kept in a text file with one `name = value` per line; `#` begins a
 * comment. `dt-bench --tune` writes it and DT_TUNE names it. All ranks of a job
 * use the parameters of rank 0. */
#ifndef DT_TUNE_TUNE_H
#define DT_TUNE_TUNE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/names.h"

/* How a collective on GPU memory goes, as the words of DT_GPU_WAY: IPC means
 * through the host, where GPUs do not reach each other. */
enum dt_tune_way { DT_TUNE_IPC, DT_TUNE_NCCL, DT_TUNE_STAGED };
#define DT_TUNE_WAYS (DT_TUNE_STAGED + 1)
/* for messages: "expected " */
#define DT_TUNE_WAY_WORDS "ipc, nccl or staged"

/* Look a way up by its name, "ipc" and so on; false if there is none. And its
 * name. */
bool dt_tune_way(const char *name, enum dt_tune_way *way);
const char *dt_tune_way_name(enum dt_tune_way way);

/* Collectives whose larger buffer has up to so many bytes go one way, larger
 * ones another; those whose counts differ by rank go the way of large ones. */
struct dt_tune_rule {
    uint64_t upto;
    int32_t brief, lengthy; /* enum dt_tune_way, or DT_TUNE_UNSET */
};
#define DT_TUNE_UNSET (-1)

/* Communicators inside a node, and others. SEND and RECV have no rules. */
enum dt_tune_scope { DT_TUNE_NODE, DT_TUNE_NET };
#define DT_TUNE_SCOPES (DT_TUNE_NET + 1)
#define DT_TUNE_COLLS  (DT_COLL_SCATTER + 1)

/* Seconds, and seconds per byte; 0: not measured. */
struct dt_tune {
    double node_latency; /* a flag from one core to another */
    double node_byte;    /* a copy into or out of shared memory */
    double fold_byte;    /* per input of a reduction */
    double net_latency;  /* a short message between nodes */
    double net_byte;     /* a long message on one rail */
    double task;         /* the overhead of any operation of a schedule */
    struct dt_tune_rule gpu[DT_TUNE_SCOPES][DT_TUNE_COLLS];
};

extern const struct dt_tune dt_tune_default;

/* Read a file. Parameters that it does not name keep their values in *tune.
 * Errors: IO; INVALID_ARG names the file, the line and what was expected. */
dt_result_t dt_tune_read(const char *path, struct dt_tune *tune,
                         struct dt_error *err);

/* All parameters not measured, and all rules unset. */
void dt_tune_clear(struct dt_tune *tune);

/* Write the parameters that are measured and the rules that are set, as
 * dt_tune_read reads them. Error: IO. */
dt_result_t dt_tune_write(FILE *file, const struct dt_tune *tune,
                          struct dt_error *err);

#endif
