/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vote.h - the ranks that open a way for GPU memory vote after each step, so
 * that all of them reach the same result. */
#ifndef DT_GPU_COLL_VOTE_H
#define DT_GPU_COLL_VOTE_H

#include "coll/engine/engine.h"

/* What a rank contributes begins with this. */
struct dt_gpu_vote {
    char why[384]; /* why this rank cannot continue; "": it can */
};

/* This rank cannot continue. The first reason is kept. */
void dt_gpu_object(struct dt_gpu_vote *mine, const struct dt_error *err);

/* Allgather the size bytes at mine into all, in the order of the ranks. *yes:
 * every rank can continue; else reason names the first rank that cannot.
 * Collective, blocks. */
dt_result_t dt_gpu_vote(struct dt_comm *comm, const struct dt_gpu_vote *mine,
                        void *all, size_t size, bool *yes, char reason[512],
                        struct dt_error *err);

#endif
