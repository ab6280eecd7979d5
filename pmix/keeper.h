/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* keeper.h - a job's private directory, and the process that removes it.
 *
 * The keeper is a child that outlives its parent, however that ends, kill -9
 * included: it reads a pipe that only the parent can write, and when that
 * closes it ends every process left of the job and removes the directory. */
#ifndef DT_PMIX_KEEPER_H
#define DT_PMIX_KEEPER_H

#include <limits.h>
#include <sys/types.h>

#include "base/error.h"

struct dt_keeper {
    char directory[PATH_MAX];
    int fd; /* the pipe */
    pid_t pid;
};

/* Make a directory and start its keeper. A process belongs to the job when
 * this user runs it and it was started with mark, "NAME=value", in its
 * environment. Call it while the process has one thread. */
dt_result_t dt_keeper_open(struct dt_keeper *keeper, const char *mark,
                           struct dt_error *err);

/* Have the keeper do its work, and wait until it has. */
void dt_keeper_close(struct dt_keeper *keeper);

#endif
