/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* save.h - saving: what is shared by the program's side of it (save.c), what
 * the ranks do together in each tier (commit.c), and what each rank writes
 * there (write.c). */
#ifndef DT_CKPT_SAVE_H
#define DT_CKPT_SAVE_H

#include "ckpt/ckpt.h"
#include "ckpt/copy.h"
#include "ckpt/drain.h"
#include "ckpt/shard.h"
#include "ckpt/snapshot.h"
#include "ckpt/store.h"
#include "ckpt/written.h"

/* One save, on one rank. */
struct dt_save {
    int64_t step;
    struct dt_vote mine;    /* SUCCESS, unless it went wrong before */
    struct dt_error memory; /* why its part is not in the node's memory */
    struct dt_shard shard;  /* what this rank writes */
    const char *image;      /* all of it as a file, or NULL */
    bool behind;            /* the program goes on meanwhile */
    double begun;           /* when that was, seconds */
};

/* The file of DT_TIER_DIR, while it is written before anybody knows whether it
 * will be needed: what has changed is known when the sums are, and meanwhile
 * the disk would be idle. */
struct dt_early {
    bool begun;
    int fd;
    dt_result_t rc;
    struct dt_error err;
};

struct dt_saver {
    struct dt_copy *copy;
    struct dt_drain *drain;  /* NULL before the first save_async */
    struct dt_drain *writer; /* of early, then of prune; the same */
    struct dt_early early;
    struct dt_snapshot *snapshot; /* the same */
    int lock;                     /* of the memory tier on this node, or -1 */
    bool memory;                  /* the ranks use it */
    bool unpinned;                /* snapshot could not be pinned */
    bool agreed;                  /* the ranks know who writes what of ... */
    uint64_t model;               /* ... this */
    struct dt_written written[DT_TIERS];
    int prune[DT_TIERS]; /* a directory just committed to, or -1 */
    struct dt_save save;
    bool pending;   /* save is, or was, under way, and nobody asked yet */
    dt_result_t rc; /* how it ended */
    struct dt_error err;
    bool full;           /* that the disk is has been said */
    bool clean;          /* the last one is on disk */
    struct dt_pace pace; /* what its votes said */
    double save_s; /* how long it took until it was on disk, as rank 0 says */
};

/* ---- agree.c ---- */

/* Set writes of everything the program named: what several ranks have is
 * written by one. Collective over ckpt->comm when the names have changed since
 * the last time. Errors: INVALID_ARG if the ranks differ, NO_MEMORY, those of
 * the collectives; the same on all ranks. */
dt_result_t dt_save_agree(struct dt_ckpt *ckpt, int64_t step,
                          struct dt_error *err);

/* ---- write.c ---- */

/* What this rank does in a tier. */
struct dt_writing {
    const struct dt_tier *tier;
    char partial[DT_STORE_NAME];
    int dirfd, partialfd;   /* of the tier, of the new checkpoint; or -1 */
    bool leader;            /* commits here: rank 0, or one of each node */
    struct dt_written next; /* what it wrote */
    char *part;             /* the same as text, of len bytes */
    size_t len;
};

/* Write this rank's files, on disk on return (but in memory), save the one that
 * was begun early: that is there, and on disk when dt_write_end returns.
 * writing is to be closed by dt_writing_close also after an error. */
dt_result_t dt_write(struct dt_ckpt *ckpt, int tier, struct dt_writing *writing,
                     struct dt_error *err);
dt_result_t dt_write_end(struct dt_ckpt *ckpt, const struct dt_writing *writing,
                         struct dt_error *err);

void dt_writing_close(struct dt_writing *writing);

/* Begin to write the file of DT_TIER_DIR, if it is likely that all of it has
 * changed. What goes wrong is found out by dt_write. */
void dt_write_early(struct dt_ckpt *ckpt);

/* Wait for that, if dt_write has not. */
void dt_write_early_end(struct dt_ckpt *ckpt);

/* ---- commit.c ---- */

/* Bring the save into a tier. Collective over ckpt->comm, with the same result
 * on all ranks; *alive is false when it is the communication that failed. */
dt_result_t dt_commit(struct dt_ckpt *ckpt, int tier, bool *alive,
                      struct dt_error *err);

/* Remove what is too old from the tiers on disk that this rank has just
 * committed to. Nobody needs to wait for it, and it may take a while: some
 * file systems pass on to the disk at once what they free. */
void dt_commit_prune(struct dt_ckpt *ckpt);

/* ---- save.c ---- */

dt_result_t dt_saver_open(struct dt_ckpt *ckpt, struct dt_error *err);

/* dt_ckpt_save, _save_async and _wait behind the argument checks. */
dt_result_t dt_save(struct dt_ckpt *ckpt, int64_t step, struct dt_error *err);
dt_result_t dt_save_behind(struct dt_ckpt *ckpt, int64_t step,
                           struct dt_error *err);
dt_result_t dt_save_wait(struct dt_ckpt *ckpt, struct dt_error *err);

/* Wait for all that is under way; how it ended stays for dt_save_wait to tell.
 */
void dt_saver_idle(struct dt_ckpt *ckpt);

/* Also waits for it. */
void dt_saver_close(struct dt_ckpt *ckpt);

/* ---- need.c ---- */

double dt_need_now(void); /* seconds, of a clock that nobody sets */

/* dt_ckpt_need. */
bool dt_need_ask(struct dt_ckpt *ckpt, int64_t step);

/* How long a step takes here, 0 unknown. */
double dt_need_step(const struct dt_need *need);

/* A save of that step has begun; it stopped the program for stall seconds. */
void dt_need_begun(struct dt_ckpt *ckpt, int64_t step, double stall);

/* It is over, and has left saver->pace and save_s. */
void dt_need_learn(struct dt_ckpt *ckpt);

#endif
