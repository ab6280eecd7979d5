/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* daemon.h - the process dt-pmixd of a step on this node, in slurmstepd.
 * base/step.h has the protocol between them. Every wait is limited, and the
 * daemon inherits no descriptor of slurmstepd's. */
#ifndef DT_SPANK_DAEMON_H
#define DT_SPANK_DAEMON_H

#include <stdint.h>

#include "helper.h"

struct dt_daemon {
    int fd;    /* our end of the socket; 0: none runs */
    pid_t pid; /* the sender of the last packet, by SCM_CREDENTIALS; 0: none */
    char *env; /* "NAME=VALUE" lines for the ranks; NULL: none runs */
    const char *program;
    struct dt_helper_user user;
    char directory[96]; /* the daemon makes it for itself */
    uint32_t running;   /* ranks of this node that have not ended */
    uint32_t ended;     /* 1 + the rank that ended last */
    bool ended_itself;  /* its "bye" has arrived */
    bool stuck;         /* it does not read its socket: nothing more is sent */
    unsigned lines;     /* that were printed */
};

/* Called for each line from the daemon for the user, at most DT_DAEMON_LINES
 * times. The daemon is the user's: the text may be anything. */
enum { DT_DAEMON_LINES = 100 };
typedef void dt_daemon_print_t(const char *line);

/* Choose a name for the directory of a step's daemon that cannot be guessed:
 * below the directory of daemon->user in /run/slurm-dt, which tasks with a /tmp
 * of their own see, too; else in /tmp. */
dt_result_t dt_daemon_name(struct dt_daemon *daemon, uint32_t job,
                           uint32_t step, struct dt_error *err);

/* Start daemon->program as daemon->user, send it config, which names
 * daemon->running ranks, and wait until it is ready, limit_ms at most.
 * NOT_FOUND, SYSTEM, TIMED_OUT; BOOTSTRAP: it failed, with its own error text.
 */
dt_result_t dt_daemon_start(struct dt_daemon *daemon, const char *config,
                            int limit_ms, struct dt_error *err);

/* Notify the daemon, if there is one. Blocks a second at most, once, if it does
 * not read its socket. */
void dt_daemon_notify_started(struct dt_daemon *daemon, uint32_t rank, int pid);
/* true for the last rank of the node. A second call in a row for the same rank,
 * as where plugstack.conf names the plugin twice, is ignored. */
bool dt_daemon_notify_ended(struct dt_daemon *daemon, uint32_t rank,
                            int status);

/* In a task: the daemon gets this end of a socket to dt-pmixd --services. */
dt_result_t dt_daemon_pass_services(const struct dt_daemon *daemon, int socket,
                                    struct dt_error *err);
/* After the last rank of the node, where services run that those of other nodes
 * may need: print lines until the daemon has ended. Blocks until all ranks of
 * the step have ended, or the step is killed. */
void dt_daemon_linger(struct dt_daemon *daemon, dt_daemon_print_t *print);

/* Print the lines that have arrived. Never blocks. */
void dt_daemon_receive(struct dt_daemon *daemon, dt_daemon_print_t *print);

/* The next "NAME=VALUE" of env, cut into name and value in place of room's
 * size bytes; *at begins as env. false at the end. */
bool dt_daemon_variable(const char **at, char *room, size_t size,
                        const char **value);

/* Shut it down, wait a few seconds, kill it if it does not end, and remove its
 * files. */
void dt_daemon_end(struct dt_daemon *daemon, dt_daemon_print_t *print);

#endif
