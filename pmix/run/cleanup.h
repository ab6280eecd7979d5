/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cleanup.h - a job's private directory, and its clean-up process.
 *
 * That is a child that outlives its parent, however the parent ends, also by
 * SIGKILL: it reads a pipe whose other end only the parent has, and when that
 * closes it ends every process left of the job and removes the directory. */
#ifndef DT_PMIX_CLEANUP_H
#define DT_PMIX_CLEANUP_H

#include <limits.h>
#include <sys/types.h>

#include "base/error.h"

struct dt_cleanup {
    char directory[PATH_MAX];
    int fd; /* the pipe */
    pid_t pid;
};

/* Make the directory and start the clean-up process. A process belongs to the
 * job when this user runs it and it was started with mark, "NAME=value", in its
 * environment. Call it while the process has one thread. */
dt_result_t dt_cleanup_open(struct dt_cleanup *cleanup, const char *mark,
                            struct dt_error *err);

/* Have it clean up, and wait until it has. */
void dt_cleanup_close(struct dt_cleanup *cleanup);

#endif
