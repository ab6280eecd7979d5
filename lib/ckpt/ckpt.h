/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt.h - the handle of a checkpoint directory, shared by what saves and what
 * loads. */
#ifndef DT_CKPT_CKPT_H
#define DT_CKPT_CKPT_H

#include "ckpt/guard.h"
#include "ckpt/interval.h"
#include "ckpt/manifest.h"
#include "ckpt/redundancy.h"
#include "ckpt/tensor.h"
#include "ckpt/vote.h"

/* What the program named. */
struct dt_ckpt_tensor {
    struct dt_tensor type; /* as a whole; of a blob U8 [0] */
    enum dt_manifest_kind kind;
    bool replicated;
    int64_t at[DT_TENSOR_DIMS_MAX],
        extent[DT_TENSOR_DIMS_MAX]; /* this rank's */
    size_t bytes;                   /* of this rank's part */
    void *data;                     /* the caller's; a blob's is owned */
    bool writes; /* this rank writes it: set before each save */
};

/* A place for checkpoints. */
struct dt_tier {
    char *dir;
    bool shared; /* all nodes see the same; else each has its own there */
    bool memory; /* a tmpfs, gone with the node */
    struct dt_guard *guard; /* of who commits there; not of MEMORY */
};

enum { DT_TIER_MEMORY, DT_TIER_DIR, DT_TIER_FLUSH, DT_TIERS };

/* Which checkpoints stay. */
struct dt_keep {
    int newest;    /* so many, 0: all */
    int64_t every; /* and those whose step is a multiple of it, 0: none */
};

struct dt_ckpt {
    struct dt_tier tier[DT_TIERS];   /* dir NULL: not there */
    struct dt_redundancy redundancy; /* of TIER_DIR if it is not shared */
    struct dt_keep keep;
    double rate; /* bytes/s of this rank in the background, 0: no limit */
    int rank, size, local_rank, node, num_nodes;
    int *node_of;   /* [size] */
    dt_comm_t comm; /* of its own, all ranks: for the thread that writes */
    uint64_t tag;   /* the same on all ranks, another for each save */
    size_t count, room;
    struct dt_ckpt_tensor *tensor;
    struct dt_vote *votes; /* size of them, so that a vote cannot fail for
                            * want of memory */
    struct dt_need need;
    struct dt_saver *saver; /* save.h: the thread and its snapshots */
};

/* dt_ckpt_load behind the argument checks. Collective. */
dt_result_t dt_ckpt_do_load(struct dt_ckpt *ckpt, int64_t *step,
                            struct dt_error *err);

/* dt_ckpt_latest, alike. Collective. */
dt_result_t dt_ckpt_do_latest(struct dt_ckpt *ckpt, int64_t *step,
                              struct dt_error *err);

/* What names and types the program named, in their order. */
uint64_t dt_ckpt_fingerprint(const struct dt_ckpt *ckpt);

/* What has that name, or NULL. */
struct dt_ckpt_tensor *dt_ckpt_find(const struct dt_ckpt *ckpt,
                                    const char *name);

/* Make or replace a blob; on success data, from malloc, is the handle's. data
 * NULL: it has the name, but this rank has none. Errors: INVALID_ARG,
 * NO_MEMORY. */
dt_result_t dt_ckpt_keep_blob(struct dt_ckpt *ckpt, const char *name,
                              void *data, size_t bytes, bool replicated,
                              struct dt_error *err);

/* Forget all names. */
void dt_ckpt_forget(struct dt_ckpt *ckpt);

#endif
