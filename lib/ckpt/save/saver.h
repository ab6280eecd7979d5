/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* saver.h - the state of saving, which the files of save/ share. */
#ifndef DT_CKPT_SAVE_SAVER_H
#define DT_CKPT_SAVE_SAVER_H

#include "ckpt/copy.h"
#include "ckpt/drain.h"
#include "ckpt/handle.h"
#include "ckpt/save/shard.h"
#include "ckpt/save/snapshot.h"
#include "ckpt/save/written.h"
#include "ckpt/source.h"

/* One save, on one rank. */
struct dt_save {
    int64_t step;
    struct dt_vote mine;    /* SUCCESS, unless the snapshot failed */
    struct dt_error memory; /* why the snapshot is not in the node's memory */
    struct dt_shard shard;  /* what this rank writes */
    const char *image;      /* the shard as one file in memory, or NULL */
    bool async;             /* the program goes on meanwhile */
    double begun;           /* seconds: when the program went on */
};

/* The shard file of TIER_DIR, which is written while the checksums are
 * computed. Only the checksums tell what has changed, and without this the disk
 * would be idle meanwhile. */
struct dt_speculative {
    bool begun;
    int fd;
    dt_result_t rc;
    struct dt_error err;
};

struct dt_saver {
    struct dt_copy *copy;
    struct dt_drain *drain;  /* runs the save; NULL before it is needed */
    struct dt_drain *writer; /* writes ahead, then prunes; NULL before that */
    struct dt_speculative ahead;
    struct dt_snapshot *snapshot; /* NULL before it is needed */
    int lock;                     /* of the memory tier on this node, or -1 */
    bool memory;                  /* the ranks use the memory tier */
    bool unpinned;                /* the snapshot could not be pinned */
    bool assigned;                /* writes is set in the tensors of ... */
    uint64_t model;               /* ... this fingerprint */
    struct dt_written written[DT_TIERS];
    int prune[DT_TIERS];     /* a directory that was just committed to, or -1 */
    struct dt_source loaded; /* while its parity is written; else fd -1 */
    struct dt_save save;
    bool pending;   /* nobody has asked yet how save ended */
    dt_result_t rc; /* how it ended */
    struct dt_error err;
    bool full;           /* "no space" was printed */
    bool clean;          /* the last save, or what was loaded, is on disk */
    struct dt_pace pace; /* from its votes */
    double save_s;       /* seconds until it was on disk, measured by rank 0 */
};

#endif
