/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vote.c - how the ranks agree on a save or a load. */
#include "ckpt/vote.h"

#include <inttypes.h>

#define WORDS(bytes) ((bytes) / sizeof(int64_t))

_Static_assert(sizeof(struct dt_vote) % sizeof(int64_t) == 0, "whole words");

dt_result_t dt_vote_outcome(dt_result_t code, struct dt_error *err)
{
    if (code == DT_SUCCESS)
        return code;
    return dt_error_set(err, code, "%s", dt_last_error());
}

dt_result_t dt_vote_gather(dt_comm_t comm, const struct dt_vote *mine,
                           struct dt_vote *votes, struct dt_error *err)
{
    return dt_vote_outcome(dt_allgather(mine, votes, WORDS(sizeof(*mine)),
                                        DT_DTYPE_I64, comm, DT_STREAM_NONE),
                           err);
}

dt_result_t dt_vote_announce(dt_comm_t comm, void *record, size_t bytes,
                             struct dt_error *err)
{
    return dt_vote_outcome(
        dt_bcast(record, WORDS(bytes), DT_DTYPE_I64, 0, comm, DT_STREAM_NONE),
        err);
}

dt_result_t dt_vote_differ(const struct dt_vote *votes, int n,
                           struct dt_error *err)
{
    for (int r = 1; r < n; r++) {
        if (votes[r].model != votes[0].model)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "rank %d named other tensors than rank 0", r);
        if (votes[r].step != votes[0].step)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "rank %d is at step %" PRId64
                                ", rank 0 at step %" PRId64,
                                r, votes[r].step, votes[0].step);
    }
    return DT_SUCCESS;
}

dt_result_t dt_vote_result(const struct dt_vote *votes, int n, int *who,
                           struct dt_error *err)
{
    *who = 0;
    if (dt_vote_differ(votes, n, err) != DT_SUCCESS)
        return DT_ERR_INVALID_ARG;
    for (int r = 0; r < n; r++) {
        *who = r;
        if (votes[r].code != DT_SUCCESS)
            return dt_error_set(err, (dt_result_t)votes[r].code, "%s",
                                votes[r].err.text);
    }
    return DT_SUCCESS;
}

dt_result_t dt_vote_agree(dt_comm_t comm, const struct dt_vote *mine,
                          struct dt_vote *votes, int n, struct dt_error *err)
{
    int who;
    dt_result_t rc = dt_vote_gather(comm, mine, votes, err);
    return rc == DT_SUCCESS ? dt_vote_result(votes, n, &who, err) : rc;
}
