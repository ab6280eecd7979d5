/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nodes.h - which ranks of the job sit on which node. */
#ifndef DT_CKPT_NODES_H
#define DT_CKPT_NODES_H

#include "ckpt/ckpt.h"

/* How many ranks node has. */
static inline int dt_node_ranks(const struct dt_ckpt *ckpt, int node)
{
    int n = 0;
    for (int r = 0; r < ckpt->size; r++)
        n += ckpt->node_of[r] == node;
    return n;
}

/* The rank that is number i of its node, from 0; -1 if it has not so many. */
static inline int dt_node_rank_at(const struct dt_ckpt *ckpt, int node, int i)
{
    for (int r = 0; r < ckpt->size; r++)
        if (ckpt->node_of[r] == node && i-- == 0)
            return r;
    return -1;
}

/* Which one this rank is. */
static inline int dt_node_lane(const struct dt_ckpt *ckpt)
{
    int n = 0;
    for (int r = 0; r < ckpt->rank; r++)
        n += ckpt->node_of[r] == ckpt->node;
    return n;
}

/* One result for all of the world: code and why are this rank's, which go out
 * with bytes into ckpt->votes. */
static inline dt_result_t dt_node_agree(struct dt_ckpt *ckpt, dt_result_t code,
                                        size_t bytes,
                                        const struct dt_error *why,
                                        struct dt_error *err)
{
    struct dt_vote mine = {.code = code, .bytes = bytes, .err = *why};
    int who;
    dt_result_t rc = dt_vote_gather(dt_comm_world(), &mine, ckpt->votes, err);
    return rc == DT_SUCCESS ? dt_vote_result(ckpt->votes, ckpt->size, &who, err)
                            : rc;
}

#endif
