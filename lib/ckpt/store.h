/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* store.h - the checkpoint directory: which checkpoints are in it, and how
 * one enters and leaves it in a single rename.
 *
 *   step-000000000150                            a checkpoint
 *   .step-000000000150.partial-0123456789abcdef  being written
 *   .step-000000000150.old-0123456789abcdef      being removed
 *
 * dirfd is the open checkpoint directory. The text of an error is a reason
 * that names the entry but not the directory. */
#ifndef DT_CKPT_STORE_H
#define DT_CKPT_STORE_H

#include "base/error.h"

#define DT_STORE_NAME 64 /* room for any name above */

struct dt_store_entry {
    char name[DT_STORE_NAME];
    int64_t step;
    bool hidden;   /* .partial or .old */
    bool complete; /* has a manifest */
};

/* The names above. */
void dt_store_name(char name[DT_STORE_NAME], int64_t step);
void dt_store_partial_name(char name[DT_STORE_NAME], int64_t step,
                           uint64_t tag);
void dt_store_old_name(char name[DT_STORE_NAME], int64_t step, uint64_t tag);

/* Open the directory path. Returns a descriptor or -1 with errno. */
int dt_store_open(const char *path);

/* All entries, the newest step first and within a step the visible one first,
 * to be freed by the caller. Only directories: links and files of such names,
 * whoever made them, are neither entered nor removed. Errors: IO,
 * NO_MEMORY. */
dt_result_t dt_store_list(int dirfd, struct dt_store_entry **entries,
                          size_t *count, struct dt_error *err);

/* Remove the directory name with the files in it, the manifest first, so that
 * no half of it ever looks complete. What is not there is removed. */
dt_result_t dt_store_remove(int dirfd, const char *name, struct dt_error *err);

/* Rename the directory partial, whose contents are on disk, to its place as
 * step, on disk when this returns. A checkpoint of that step is replaced:
 * atomically where the file system can exchange two names, else with a moment
 * between two renames in which the hidden names hold both. On failure the
 * directory is as before. What is no directory is not replaced. tag must be
 * new. Errors: IO, NO_SPACE. */
dt_result_t dt_store_publish(int dirfd, const char *partial, int64_t step,
                             uint64_t tag, struct dt_error *err);

/* Clear up after a crash: remove hidden entries but the one called except,
 * and move a complete one to its place if nothing is there. What cannot be
 * removed stays. */
void dt_store_sweep(int dirfd, const char *except);

/* Of the complete checkpoints before step keep the newest - 1 newest and those
 * whose step is a multiple of every, which are not counted, and remove the
 * rest. newest 0 keeps all, every 0 is none. tag must be new. */
dt_result_t dt_store_prune(int dirfd, int64_t step, int newest, int64_t every,
                           uint64_t tag, struct dt_error *err);

#endif
