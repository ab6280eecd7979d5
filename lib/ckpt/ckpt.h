/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt.h - the handle of a checkpoint directory, shared by open, save and
 * load. */
#ifndef DT_CKPT_CKPT_H
#define DT_CKPT_CKPT_H

#include "ckpt/tensor.h"
#include "ckpt/vote.h"

struct dt_ckpt_tensor {
    struct dt_tensor type;
    void *data; /* the caller's */
    bool replicated;
};

struct dt_ckpt {
    char *dir;
    int keep;
    int rank, size;
    uint64_t tag; /* the same on all ranks, another for each save */
    size_t count, room;
    struct dt_ckpt_tensor *tensor;
    struct dt_vote *votes; /* size of them, so that a vote cannot fail for
                            * want of memory */
};

/* dt_ckpt_save and dt_ckpt_load behind the argument checks. Collective. */
dt_result_t dt_ckpt_do_save(struct dt_ckpt *ckpt, int64_t step,
                            struct dt_error *err);
dt_result_t dt_ckpt_do_load(struct dt_ckpt *ckpt, int64_t *step,
                            struct dt_error *err);

/* What all ranks must have in common, to compare in a vote. */
uint64_t dt_ckpt_fingerprint(const struct dt_ckpt *ckpt);

#endif
