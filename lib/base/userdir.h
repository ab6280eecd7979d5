/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* userdir.h - directories of one user each, below one of root's, so that nobody
 * else can take a name in them: PARENT (root's, 0755) / UID (the user's, 0700).
 * The plugin makes them where slurmd runs as root. */
#ifndef DT_BASE_USERDIR_H
#define DT_BASE_USERDIR_H

#include <sys/types.h>

#include "base/error.h"

#define DT_USERDIR_RUN "/run/slurm-dt"     /* the files of jobs */
#define DT_USERDIR_SHM "/dev/shm/slurm-dt" /* checkpoints in memory */

/* As root: make both, if they are not there. SYSTEM: one is no directory, is a
 * link, is another user's, or has another mode. */
dt_result_t dt_userdir_make(const char *parent, uid_t uid, gid_t gid,
                            struct dt_error *err);

/* Open uid's directory. -1 with errno; ENOENT: there is none; EPERM: it, or
 * parent, is not as above. Links are not followed. */
int dt_userdir_open(const char *parent, uid_t uid);

#endif
