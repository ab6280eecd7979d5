/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place.h - which task of a node gets which GPUs. Pure: no I/O, no state. It
 * permutes what Slurm granted and never adds to it. */
#ifndef DT_TOPO_PLACE_H
#define DT_TOPO_PLACE_H

#include "base/error.h"

#define DT_PLACE_MAX_GPUS 64

enum dt_place_policy {
    DT_PLACE_AUTO,   /* all GPUs, those of local rank i at device index i */
    DT_PLACE_ROTATE, /* all GPUs, the task's own first */
    DT_PLACE_SINGLE, /* only its own */
    DT_PLACE_COUNT,  /* only its own, count of them */
};

struct dt_place_request {
    enum dt_place_policy policy;
    size_t count; /* for DT_PLACE_COUNT, at least 1 */
    size_t ngpus; /* granted on this node */
    size_t ntasks;
};

/* Places among the granted GPUs, 0 .. ngpus-1. */
struct dt_place_task {
    size_t nown, own[DT_PLACE_MAX_GPUS];
    size_t nvisible, visible[DT_PLACE_MAX_GPUS];
};

/* Place one task, 0 <= task < ntasks. Each call sees the same whole, so tasks
 * agree without talking. Own GPUs: the granted ones cut evenly and
 * contiguously, larger shares first; with more tasks than GPUs, task i owns
 * GPU i*ngpus/ntasks, and AUTO leaves the GPUs in order. Error INVALID_ARG: no
 * GPU, more than DT_PLACE_MAX_GPUS, or more asked for than granted. */
dt_result_t dt_place(const struct dt_place_request *request, size_t task,
                     struct dt_place_task *placed, struct dt_error *err);

#endif
