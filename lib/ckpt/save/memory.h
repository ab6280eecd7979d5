/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.h - the directory of the memory tier on this node:
 *
 *   /dev/shm/slurm-dt/<uid>/<run id>/<16 digits for the checkpoint directory>
 *
 * where the plugin has made a directory for the user (base/userdir.h), else
 *
 *   /dev/shm/slurm-dt-<uid>/<run id>/<16 digits for the checkpoint directory>
 *
 * all from <uid> on of mode 0700 and owned by this user. It outlives the
 * processes of a job, so that a rank that dies loses nothing; it is removed
 * when the job ends well, or after a day. */
#ifndef DT_CKPT_SAVE_MEMORY_H
#define DT_CKPT_SAVE_MEMORY_H

#include "base/error.h"

/* Its path for the checkpoints of the run in the directory dir, which exists;
 * to be freed. If another directory takes the place of dir, its path differs.
 * NULL: out of memory, or there is no dir. */
char *dt_memory_path(const char *run_id, const char *dir);

/* Create and open it. Errors: INVALID_ARG if a part of the path is a link,
 * another user's or open to others; IO, NO_SPACE. */
dt_result_t dt_memory_open(const char *path, int *fd, struct dt_error *err);

/* Would dt_memory_open accept what is there now, if anything? */
dt_result_t dt_memory_check(const char *path, struct dt_error *err);

/* Keep other processes from removing it as a leftover, and from writing there,
 * until *lock is closed. One process of the node does so. Errors: BUSY, IO,
 * NO_SPACE. */
dt_result_t dt_memory_lock(int fd, int *lock, struct dt_error *err);

/* Remove the directories of other runs of this user that are older than a day
 * and not locked. */
void dt_memory_sweep(const char *path);

/* Remove it with its contents, and the directories above it that are empty. */
void dt_memory_remove(const char *path);

/* Create the directory name in dirfd, where others may write, and open it as
 * one of this user's alone (mode 0700). It may exist. Errors: INVALID_ARG if it
 * is a link, another user's, or open to others; NOT_FOUND if it, or dirfd, was
 * removed at the same moment; IO, NO_SPACE. */
dt_result_t dt_memory_private_dir(int dirfd, const char *name, int *fd,
                                  struct dt_error *err);

#endif
