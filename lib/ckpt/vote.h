/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vote.h - how the ranks agree on a save or a load. Every rank votes before it
 * returns, so that an error of one rank is reported on all. */
#ifndef DT_CKPT_VOTE_H
#define DT_CKPT_VOTE_H

#include "base/error.h"

/* The vote of one rank: whole 64-bit words, sent as they are in memory. Fields
 * that the occasion does not need are 0. */
struct dt_vote {
    int64_t code;    /* a dt_result_t */
    int64_t step;    /* save, load */
    uint64_t model;  /* save, load: the fingerprint of the tensors it named */
    int64_t unready; /* save: code is the snapshot's, not a tier's */
    double copy_s;   /* save: seconds for which the program was stopped */
    double step_s;   /* save: seconds of a training step, 0 unknown */
    double left_s;   /* save: dt_time_left() */
    uint64_t text_bytes; /* the JSON text that this rank will send */
    uint64_t span_bytes; /* the files of its node, which redundancy protects */
    uint64_t found;      /* checkpoints in its node's directory */
    uint64_t rounds;     /* load: rounds of dt_fetch that it needs */
    int64_t has_memory;  /* open: its node's memory can be a tier */
    int64_t damaged;     /* rebuild: it has read damaged data */
    int64_t lost;        /* parity: that of its node is lost */
    struct dt_error err; /* the text for code */
};

/* Exchange the votes of all ranks of comm: votes[size]. Collective over comm.
 * Errors: those of dt_allgather; the code of a vote is no error. */
dt_result_t dt_vote_gather(dt_comm_t comm, const struct dt_vote *mine,
                           struct dt_vote *votes, struct dt_error *err);

/* Do n votes belong together? INVALID_ARG, the same on all ranks, if two ranks
 * have named other tensors or are at another step. */
dt_result_t dt_vote_differ(const struct dt_vote *votes, int n,
                           struct dt_error *err);

/* The result of n votes, the same on all ranks: INVALID_ARG if they do not
 * belong together; else the code and text of the lowest rank, *who, that has
 * failed; else SUCCESS. */
dt_result_t dt_vote_result(const struct dt_vote *votes, int n, int *who,
                           struct dt_error *err);

/* dt_vote_gather and dt_vote_result in one: one result for all n ranks. */
dt_result_t dt_vote_agree(dt_comm_t comm, const struct dt_vote *mine,
                          struct dt_vote *votes, int n, struct dt_error *err);

/* Broadcast a record of rank 0, whose bytes are a multiple of 8. Collective
 * over comm. Errors: those of dt_bcast. */
dt_result_t dt_vote_announce(dt_comm_t comm, void *record, size_t bytes,
                             struct dt_error *err);

/* The code of a collective with its text, which is the thread's last error. */
dt_result_t dt_vote_outcome(dt_result_t code, struct dt_error *err);

#endif
