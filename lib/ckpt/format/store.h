/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* store.h - the checkpoint directory: which checkpoints it has, and how one is
 * added or removed in a single rename.
 *
 *   step-000000000150                            a checkpoint
 *   .step-000000000150.partial-0123456789abcdef  one that is being written
 *   .step-000000000150.old-0123456789abcdef      one that is being removed
 *
 * dirfd is the open checkpoint directory. The text of an error is a reason that
 * names the entry, but not the directory. */
#ifndef DT_CKPT_FORMAT_STORE_H
#define DT_CKPT_FORMAT_STORE_H

#include "base/error.h"

#define DT_STORE_NAME 64 /* room for any name above */

struct dt_store_entry {
    char name[DT_STORE_NAME];
    int64_t step;
    bool hidden;   /* .partial or .old */
    bool complete; /* has a manifest */
};

/* Format the names above. */
void dt_store_name(char name[DT_STORE_NAME], int64_t step);
void dt_store_partial_name(char name[DT_STORE_NAME], int64_t step,
                           uint64_t tag);
void dt_store_old_name(char name[DT_STORE_NAME], int64_t step, uint64_t tag);

/* Open the directory path, or the directory name in dirfd, which must not be a
 * link. Returns a descriptor, or -1 with errno. */
int dt_store_open(const char *path);
int dt_store_open_at(int dirfd, const char *name);

/* List all entries, to be freed: the newest step first, and within a step the
 * visible entry first. Only directories count: links and files with such names
 * are neither opened nor removed. Errors: IO, NO_MEMORY. */
dt_result_t dt_store_list(int dirfd, struct dt_store_entry **entries,
                          size_t *count, struct dt_error *err);

/* Remove the directory name and its files, the manifest first, so that a part
 * of it never looks complete. A directory that does not exist is no error. */
dt_result_t dt_store_remove(int dirfd, const char *name, struct dt_error *err);

/* Rename the directory partial, whose contents are on disk, to the checkpoint
 * of step; the new name is on disk on return. An older checkpoint of that step
 * is replaced: atomically where the file system can exchange two names, else by
 * two renames, between which both have hidden names. After an error everything
 * is as before. A file or link of that name is not replaced. tag must be new.
 * Errors: IO, NO_SPACE. */
dt_result_t dt_store_publish(int dirfd, const char *partial, int64_t step,
                             uint64_t tag, struct dt_error *err);

/* Clean up after a crash: remove all hidden entries except the one called
 * except; a complete one gets its visible name if that is free. Entries that
 * cannot be removed stay. */
void dt_store_sweep(int dirfd, const char *except);

/* Remove complete checkpoints before step, except the newest - 1 newest ones
 * and those whose step is a multiple of every, which are not counted. newest 0
 * keeps all, every 0 means none. tag must be new. */
dt_result_t dt_store_prune(int dirfd, int64_t step, int newest, int64_t every,
                           uint64_t tag, struct dt_error *err);

#endif
