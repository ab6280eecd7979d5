/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vote.h - how the ranks agree on a checkpoint. A rank never returns before
 * it has voted: what goes wrong on one is carried to all. */
#ifndef DT_CKPT_VOTE_H
#define DT_CKPT_VOTE_H

#include "base/error.h"

/* What one rank says. Sent as it lies: whole 64-bit words. */
struct dt_vote {
    int64_t code; /* a dt_result_t */
    int64_t step;
    uint64_t model;      /* fingerprint of the tensors it named */
    uint64_t bytes;      /* of what it will send next */
    int64_t unready;     /* saving: code is of no tier, but of the copy */
    double copy_s;       /* saving: how long the program was stopped, seconds */
    double step_s;       /* and how long a step takes, 0 unknown */
    double left_s;       /* and dt_time_left() */
    struct dt_error err; /* why not */
};

/* Every rank's vote to every rank of comm: votes[size]. Collective over comm.
 * Errors: those of dt_allgather, never a vote's. */
dt_result_t dt_vote_gather(dt_comm_t comm, const struct dt_vote *mine,
                           struct dt_vote *votes, struct dt_error *err);

/* Are the ranks doing the same? INVALID_ARG, the same on all, if two name other
 * tensors or are at another step. */
dt_result_t dt_vote_differ(const struct dt_vote *votes, int n,
                           struct dt_error *err);

/* What n votes amount to, the same on all ranks: SUCCESS; INVALID_ARG if they
 * differ; else code and text of the lowest rank that
 * failed, *who. */
dt_result_t dt_vote_result(const struct dt_vote *votes, int n, int *who,
                           struct dt_error *err);

/* bytes, a multiple of 8, of rank 0's record to all. Collective over comm.
 * Errors: those of dt_bcast. */
dt_result_t dt_vote_announce(dt_comm_t comm, void *record, size_t bytes,
                             struct dt_error *err);

/* A collective's code with its text, which is the thread's last error. */
dt_result_t dt_vote_outcome(dt_result_t code, struct dt_error *err);

#endif
