/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watch.h - the process of a step on this node that tells the leaders of its
 * tasks, the processes that slurmstepd has started, by a signal that they are
 * to leave: dt-requeue _watch. Each leader comes as a descriptor for it, in a
 * packet of its own, so no other process can be meant. */
#ifndef DT_SPANK_WATCH_H
#define DT_SPANK_WATCH_H

#include "helper.h"

struct dt_watch {
    bool tried;  /* to start it */
    int fd;      /* our end of the socket; 0: none runs */
    pid_t pid;   /* a child of ours: Slurm signals it as it does the tasks */
    pid_t added; /* the leader that was handed over last */
    pid_t ended; /* the leader that ended last */
    unsigned running;
};

/* Start the program of how, which gets the socket as its input, where Slurm
 * finds it when it signals leader. NOT_FOUND: it cannot be run; SYSTEM. */
dt_result_t dt_watch_start(struct dt_watch *watch, const struct dt_helper *how,
                           pid_t leader, struct dt_error *err);

/* leader is a child of this process that nobody has waited for. Told twice of
 * one in a row, it is handed over once. Nothing where none runs; blocks a
 * second at most. SYSTEM. */
dt_result_t dt_watch_add(struct dt_watch *watch, pid_t leader,
                         struct dt_error *err);

/* With the last leader, it is ended: what is left of a step when its tasks have
 * ended, Slurm waits for. Told twice of one in a row, it does not count. */
void dt_watch_ended(struct dt_watch *watch, pid_t leader);

/* Tell it to end; kill it if it has not after a second. */
void dt_watch_end(struct dt_watch *watch);

#endif
