/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory_lock.h - one job at a time saves into a directory.
 *
 * The file .lock in the directory names its owner, which holds a lock on it
 * (fcntl, which NFS, Lustre and the like carry to all nodes) until its process
 * ends. A lock outlives its owner in two cases: a child that the owner forked
 * still runs, or the owner's node died and the file server has not noticed. So
 * .lock also has a generation, and only the lock of that counts: a process that
 * finds the owner gone begins the next generation, and the owner, if it lives
 * on, finds out by dt_directory_lock_held. */
#ifndef DT_CKPT_FORMAT_DIRECTORY_LOCK_H
#define DT_CKPT_FORMAT_DIRECTORY_LOCK_H

#include "base/error.h"

#define DT_DIRECTORY_LOCK_NAME ".lock"

struct dt_directory_lock;

/* Lock the directory dirfd, which error texts call dir, until release or the
 * end of the process. The rank that commits there calls it: rank 0 for a
 * directory that all nodes share, else one rank of each node. The lock of a
 * process of this node that has ended is taken over, and that of the same job
 * and run before a restart. Waits at most a second. Where the file system has
 * no locks, it prints one line on stderr and succeeds. dirfd is borrowed for
 * the call. Errors: BUSY names the owner; INVALID_ARG if other users could
 * plant files there; IO, NO_SPACE, NO_MEMORY. */
dt_result_t dt_directory_lock_take(int dirfd, const char *dir,
                                   const char *run_id, int restart,
                                   struct dt_directory_lock **lock,
                                   struct dt_error *err);

/* Does this process still own the directory? To be asked before a commit: it
 * does not if the job was restarted elsewhere while this process could not be
 * reached, or if .lock was removed. May be called by any thread. */
bool dt_directory_lock_held(const struct dt_directory_lock *lock);

/* Unlock and free. NULL is allowed. In a forked child it only closes. */
void dt_directory_lock_release(struct dt_directory_lock *lock);

#endif
