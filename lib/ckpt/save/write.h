/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* write.h - what one rank writes of a checkpoint into a tier. */
#ifndef DT_CKPT_SAVE_WRITE_H
#define DT_CKPT_SAVE_WRITE_H

#include "ckpt/save/saver.h"

/* What this rank does in a tier. */
struct dt_writing {
    const struct dt_tier *tier;
    char partial[DT_STORE_NAME];
    int dirfd, partialfd;   /* of the tier, of the new checkpoint; or -1 */
    bool leader;            /* this rank commits: rank 0, or one of each node */
    struct dt_written next; /* what it wrote */
    char *part;             /* its part of the manifest, len bytes of text */
    size_t len;
};

/* Write this rank's files. They are on disk on return, except in the memory
 * tier and except the file that dt_write_ahead began: that exists, and is on
 * disk when dt_write_end returns. dt_writing_close must follow, also after an
 * error. */
dt_result_t dt_write(struct dt_ckpt *ckpt, int tier, struct dt_writing *writing,
                     struct dt_error *err);
dt_result_t dt_write_end(struct dt_ckpt *ckpt, const struct dt_writing *writing,
                         struct dt_error *err);

void dt_writing_close(struct dt_writing *writing);

/* Begin to write the shard file of TIER_DIR in the background, if it is likely
 * that all of it has changed. dt_write reports what goes wrong. */
void dt_write_ahead(struct dt_ckpt *ckpt);

/* Wait for that file, if dt_write_end has not. */
void dt_write_ahead_end(struct dt_ckpt *ckpt);

#endif
