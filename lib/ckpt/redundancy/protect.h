/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* protect.h - computing parity of a checkpoint that is there already. */
#ifndef DT_CKPT_REDUNDANCY_PROTECT_H
#define DT_CKPT_REDUNDANCY_PROTECT_H

#include "ckpt/handle.h"

/* What this node does. */
struct dt_protect_part {
    bool idle;    /* nothing: its redundancy set is not computed anew */
    bool lost;    /* it writes its parity, else it has that */
    size_t files; /* shard files that are in its directory, and no others */
};

/* Compute the parity of redundancy sets anew, from the files in dirfd, and
 * write what is lost. saved is the handle with the numbers of the save:
 * redundancy, num_nodes, tag, and in node and node_of which node of the save a
 * rank's node has the files of (any other number: none; then it is idle). All
 * nodes of a set are idle, or none. The rest is as for dt_protect. */
dt_result_t dt_protect_lost(const struct dt_ckpt *saved, int dirfd,
                            const struct dt_protect_part *part,
                            dt_result_t code, struct dt_error *err);

#endif
