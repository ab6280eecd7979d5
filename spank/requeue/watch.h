/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watch.h - the process "dt-requeue _watch" of a step on this node. When the
 * step is to leave, it writes the notice and, with --dt-notice-signal, signals
 * the leaders of the tasks (the processes that slurmstepd has started). The
 * plugin passes it a pidfd of each leader, so that no other process can get the
 * signal. It removes the notice file after the last leader. */
#ifndef DT_SPANK_WATCH_H
#define DT_SPANK_WATCH_H

#include "helper.h"

struct dt_watch {
    bool tried;  /* to start it */
    int fd;      /* our end of the socket; 0: none runs */
    pid_t pid;   /* a child of ours: Slurm signals it as it does the tasks */
    pid_t added; /* the last leader that was passed */
    pid_t ended; /* the leader that ended last */
    unsigned running;
};

/* Start the program of how, with the socket as its standard input, in the
 * freezer cgroup of leader, so that Slurm's signals to the step reach it.
 * NOT_FOUND: it cannot be run; SYSTEM. */
dt_result_t dt_watch_start(struct dt_watch *watch, const struct dt_helper *how,
                           pid_t leader, struct dt_error *err);

/* Pass a leader, a child of this process that is not reaped. A second call in a
 * row for the same one is ignored, as is a call where no process runs. Blocks a
 * second at most. SYSTEM. */
dt_result_t dt_watch_add(struct dt_watch *watch, pid_t leader,
                         struct dt_error *err);

/* With the last leader the process is ended, as Slurm waits for all processes
 * of a step. A second call in a row for the same leader is ignored. */
void dt_watch_ended(struct dt_watch *watch, pid_t leader);

/* End it; kill it if it has not ended after a second. */
void dt_watch_end(struct dt_watch *watch);

#endif
