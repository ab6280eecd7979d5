/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* guard.h - one job at a time saves into a directory, and nobody else leads it
 * astray there.
 *
 * The file .lock in the directory says who has it; a lock on it (fcntl, which
 * NFS, Lustre and the like carry to all nodes) goes with the process. A lock
 * outlives its owner in two cases: a child that the owner forked still runs,
 * or the owner's node died and the file server has not noticed. So .lock also
 * has a generation, whose lock alone counts: who sees that the owner is gone
 * begins the next one, and the owner, if it lives on, finds out by
 * dt_guard_held. */
#ifndef DT_CKPT_GUARD_H
#define DT_CKPT_GUARD_H

#include "base/error.h"

#define DT_GUARD_NAME ".lock"

struct dt_guard;

/* Take the directory dirfd, dir in texts, until release or the end of the
 * process. Whoever commits there calls it: rank 0 for a directory that all
 * nodes share, else one rank of each node. It is taken over from a process of
 * this node that is gone, and from the same job and run before a restart.
 * Waits a second at most. Where the file system has no locks, says so once on
 * stderr and goes on. dirfd is borrowed for the call. Errors: BUSY names who
 * has it; INVALID_ARG if other users could plant things there; IO, NO_SPACE,
 * NO_MEMORY. */
dt_result_t dt_guard_take(int dirfd, const char *dir, const char *run_id,
                          int restart, struct dt_guard **guard,
                          struct dt_error *err);

/* Is it still ours? To be asked before a commit: no, if the job was restarted
 * elsewhere while this process could not be reached, or if .lock was removed.
 * From any thread. */
bool dt_guard_held(const struct dt_guard *guard);

/* Give it back. NULL is fine. In a forked child it only closes. */
void dt_guard_release(struct dt_guard *guard);

/* Open the directory name in dirfd, which others may write in, as one that is
 * this user's alone (mode 0700), after making it if it is not there. Errors:
 * INVALID_ARG if it is a link, another user's, or open to others; NOT_FOUND if
 * it, or dirfd, was removed at the same moment; IO, NO_SPACE. */
dt_result_t dt_guard_private(int dirfd, const char *name, int *fd,
                             struct dt_error *err);

#endif
