/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nodes.h - which ranks of the job are on which node. */
#ifndef DT_CKPT_NODES_H
#define DT_CKPT_NODES_H

#include "ckpt/handle.h"

/* The number of ranks on node. */
int dt_nodes_ranks(const struct dt_ckpt *ckpt, int node);

/* The rank of that rail on node, or -1. */
int dt_nodes_rank_at(const struct dt_ckpt *ckpt, int node, int rail);

/* The rail of this rank: its number among the ranks of its node, from 0. */
int dt_nodes_rail(const struct dt_ckpt *ckpt);

#endif
