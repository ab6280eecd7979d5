/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* commit.h - what the ranks do together to bring a save into a tier. */
#ifndef DT_CKPT_SAVE_COMMIT_H
#define DT_CKPT_SAVE_COMMIT_H

#include "ckpt/handle.h"

/* Write and commit the save into a tier. Collective over ckpt->comm, with the
 * same result on all ranks; *alive is false if the communication failed. */
dt_result_t dt_commit(struct dt_ckpt *ckpt, int tier, bool *alive,
                      struct dt_error *err);

/* Remove checkpoints that are too old from the tiers on disk to which this rank
 * has just committed. It may take long, since some file systems pass on to the
 * disk at once what they free; no rank has to wait for it. */
void dt_commit_prune(struct dt_ckpt *ckpt);

#endif
