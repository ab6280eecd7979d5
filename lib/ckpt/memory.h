/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.h - the directory of the memory tier on this node:
 *
 *   /dev/shm/slurm-dt-<uid>/<run id>/<16 digits for the checkpoint directory>
 *
 * all of mode 0700 and this user's. It outlives the processes of a job, so that
 * a rank that dies loses nothing; it goes when the job ends well, or after a
 * day. */
#ifndef DT_CKPT_MEMORY_H
#define DT_CKPT_MEMORY_H

#include "base/error.h"

/* Its path for checkpoints of the run in the directory dir, which exists; to be
 * freed. Another directory that takes the place of dir has another path. NULL:
 * no memory, or no dir. */
char *dt_memory_path(const char *run_id, const char *dir);

/* Make and open it. Errors: INVALID_ARG if something there is a link, another
 * user's or open to others; IO, NO_SPACE. */
dt_result_t dt_memory_open(const char *path, int *fd, struct dt_error *err);

/* Is what is there, if anything, as safe as open demands? */
dt_result_t dt_memory_check(const char *path, struct dt_error *err);

/* Keep others from taking it for a leftover, and from writing there: *lock is
 * to be closed at the end. By one process of the node. Errors: BUSY, IO,
 * NO_SPACE. */
dt_result_t dt_memory_lock(int fd, int *lock, struct dt_error *err);

/* Remove those of other runs of this user that are older than a day and not
 * locked. */
void dt_memory_sweep(const char *path);

/* Remove it, all that is in it, and what is empty above it. */
void dt_memory_remove(const char *path);

#endif
