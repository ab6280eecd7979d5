/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* daemon.h - dt-pmixd of a step on this node, as slurmstepd sees it: started,
 * told, ended. base/step.h draws what they say to each other. Every wait has an
 * end, and nothing of slurmstepd's stays open in the daemon. */
#ifndef DT_SPANK_DAEMON_H
#define DT_SPANK_DAEMON_H

#include <stdint.h>

#include "helper.h"

struct dt_daemon {
    int fd;    /* our end of the socket; 0: none runs */
    pid_t pid; /* as the kernel names who sends; 0: nothing has come */
    char *env; /* "NAME=VALUE" lines for the ranks; NULL: none runs */
    const char *program;
    struct dt_helper_user user;
    char directory[64]; /* the daemon's own */
    uint32_t running;   /* ranks of this node that have not ended */
    uint32_t ended;     /* 1 + the rank that ended last */
    bool bye, deaf;     /* it has said so; it takes nothing any more */
};

/* Called for each line that the daemon wants the user to see. */
typedef void dt_daemon_print_t(const char *line);

/* A name for the directory of a step's daemon that nobody can know before. */
dt_result_t dt_daemon_name(struct dt_daemon *daemon, uint32_t job,
                           uint32_t step, struct dt_error *err);

/* Start daemon->program as daemon->user, hand it config, which names
 * daemon->running ranks, and wait until it is ready, limit_ms at most.
 * NOT_FOUND, SYSTEM, TIMED_OUT; BOOTSTRAP: it said why it failed. */
dt_result_t dt_daemon_start(struct dt_daemon *daemon, const char *config,
                            int limit_ms, struct dt_error *err);

/* Nothing where none runs. Blocks a second at most, once, where the daemon has
 * stopped to listen. */
void dt_daemon_notify_started(struct dt_daemon *daemon, uint32_t rank, int pid);
/* true with the last rank of the node. Told twice of one in a row, as where the
 * plugin is named twice, it does not count. */
bool dt_daemon_notify_ended(struct dt_daemon *daemon, uint32_t rank,
                            int status);

/* Print what it has said. Never blocks. */
void dt_daemon_receive(struct dt_daemon *daemon, dt_daemon_print_t *say);

/* The next "NAME=VALUE" of env, cut into name and value in place of room's
 * size bytes; *at begins as env. false at the end. */
bool dt_daemon_variable(const char **at, char *room, size_t size,
                        const char **value);

/* Tell it to end, wait a few seconds, kill it if it does not, and remove what
 * it may have left. */
void dt_daemon_end(struct dt_daemon *daemon, dt_daemon_print_t *say);

#endif
