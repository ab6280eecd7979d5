/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nodes.c - which ranks of the job are on which node. */
#include "ckpt/nodes.h"

int dt_nodes_ranks(const struct dt_ckpt *ckpt, int node)
{
    int n = 0;
    for (int r = 0; r < ckpt->size; r++)
        n += ckpt->node_of[r] == node;
    return n;
}

int dt_nodes_rank_at(const struct dt_ckpt *ckpt, int node, int rail)
{
    for (int r = 0; r < ckpt->size; r++)
        if (ckpt->node_of[r] == node && rail-- == 0)
            return r;
    return -1;
}

int dt_nodes_rail(const struct dt_ckpt *ckpt)
{
    int n = 0;
    for (int r = 0; r < ckpt->rank; r++)
        n += ckpt->node_of[r] == ckpt->node;
    return n;
}
