/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* handle.h - struct dt_ckpt, the handle of a checkpoint directory. */
#ifndef DT_CKPT_HANDLE_H
#define DT_CKPT_HANDLE_H

#include "ckpt/format/format.h"
#include "ckpt/need.h"
#include "ckpt/vote.h"

/* A tensor, a slice or a blob that the program has named. */
struct dt_ckpt_tensor {
    struct dt_tensor type; /* of the whole tensor; a blob is U8 [0] */
    enum dt_manifest_kind kind;
    bool replicated;
    int64_t at[DT_TENSOR_DIMS_MAX],
        extent[DT_TENSOR_DIMS_MAX]; /* this rank's slice */
    size_t bytes;                   /* of this rank's slice */
    void *data;                     /* the caller's; of a blob the handle's */
    bool writes; /* this rank writes it: set before each save */
};

/* A place for checkpoints. */
struct dt_tier {
    char *dir;
    bool shared; /* all nodes see the same directory; else each has its own */
    bool memory; /* a tmpfs, lost with the node */
    struct dt_directory_lock *lock; /* held by the rank that commits there;
                                     * never in MEMORY */
};

enum { DT_TIER_MEMORY, DT_TIER_DIR, DT_TIER_FLUSH, DT_TIERS };

/* Which checkpoints stay. */
struct dt_keep {
    int newest;    /* so many of the newest, 0: all */
    int64_t every; /* and those whose step is a multiple of it, 0: none */
};

struct dt_ckpt {
    struct dt_tier tier[DT_TIERS]; /* dir NULL: the tier is not used */
    struct dt_erasure redundancy;  /* of TIER_DIR if that is not shared */
    struct dt_keep keep;
    double rate; /* bytes/s that this rank drains at most, 0: no limit */
    int rank, size, local_rank, node, num_nodes;
    int *node_of;   /* [size] the node of each rank */
    dt_comm_t comm; /* all ranks; for the thread that drains */
    uint64_t tag;   /* identifies the save: the same on all ranks */
    bool read_only; /* the shared directory is mounted so: no saves */
    size_t count, room;
    struct dt_ckpt_tensor *tensor;
    struct dt_vote *votes; /* [size], so that a vote cannot fail for want of
                            * memory */
    struct dt_need need;
    struct dt_saver *saver; /* save/: the thread and its snapshots */
};

#endif
