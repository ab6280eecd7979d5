/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.h - the processes of a job on this machine. */
#ifndef DT_PMIX_RANKS_H
#define DT_PMIX_RANKS_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"

struct dt_ranks {
    pid_t *pids; /* 0 when not running */
    size_t count, running;
    sigset_t mask;       /* the signals that the ranks block */
    struct rlimit files; /* how many files a rank may open */
};

/* What one rank is started with. */
struct dt_rank_start {
    char **argv, **env;
    int out, err;   /* where it writes, or -1 for where this process does */
    cpu_set_t cpus; /* that it may use; empty: those of this process */
};

/* Also lets this process open as many files as it can: PMIx needs one per
 * rank, labels two. The ranks get the limit as it was. */
dt_result_t dt_ranks_open(struct dt_ranks *ranks, size_t count,
                          const sigset_t *mask, struct dt_error *err);

/* Start one rank. It dies with this process, whatever that dies of. Rank 0
 * has our standard input, the others an empty one; further descriptors are
 * closed. NOT_FOUND when there is no such program, IO when it cannot be run,
 * SYSTEM when there can be no process. */
dt_result_t dt_ranks_start(struct dt_ranks *ranks, size_t rank,
                           const struct dt_rank_start *start,
                           struct dt_error *err);

void dt_ranks_signal(const struct dt_ranks *ranks, int sig);

/* A rank that has ended and its exit code, or 128 + the signal that killed
 * it; false if there is none now. */
bool dt_ranks_reap(struct dt_ranks *ranks, size_t *rank, int *code);

void dt_ranks_close(struct dt_ranks *ranks);

#endif
