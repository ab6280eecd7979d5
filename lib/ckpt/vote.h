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
    uint64_t model;          /* fingerprint of the tensors it named */
    uint64_t size, checksum; /* of the file it wrote */
    struct dt_error err;     /* why not */
};

/* Every rank's vote to every rank: votes[dt_size()]. Collective over the
 * world. Errors: those of dt_allgather, never a vote's. */
dt_result_t dt_vote_gather(const struct dt_vote *mine, struct dt_vote *votes,
                           struct dt_error *err);

/* What n votes amount to, the same on all ranks: SUCCESS; INVALID_ARG if two
 * ranks are not doing the same; else code and text of the lowest rank that
 * failed, *who. */
dt_result_t dt_vote_result(const struct dt_vote *votes, int n, int *who,
                           struct dt_error *err);

/* bytes, a multiple of 8, of rank 0's record to all. Collective over the
 * world. Errors: those of dt_bcast. */
dt_result_t dt_vote_announce(void *record, size_t bytes, struct dt_error *err);

#endif
