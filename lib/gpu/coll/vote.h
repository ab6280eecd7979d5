/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vote.h - the ranks that open a way for GPU memory tell each other how a
 * step of it went, so that all come to the same answer. */
#ifndef DT_GPU_COLL_VOTE_H
#define DT_GPU_COLL_VOTE_H

#include "coll/engine/engine.h"

/* What a rank tells begins with this. */
struct dt_gpu_vote {
    char why[384]; /* it cannot go on; "": it can */
};

/* This rank cannot; the first word counts. */
void dt_gpu_object(struct dt_gpu_vote *mine, const struct dt_error *err);

/* Collective: tell all the size bytes at mine, and hear of all, in the order of
 * their ranks. *yes: every rank can go on, else reason names the first that
 * cannot. */
dt_result_t dt_gpu_vote(struct dt_comm *comm, const struct dt_gpu_vote *mine,
                        void *all, size_t size, bool *yes, char reason[512],
                        struct dt_error *err);

#endif
