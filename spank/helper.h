/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* helper.h - start programs of ours as the job's user. They inherit neither
 * descriptors nor signal handlers nor variables. */
#ifndef DT_SPANK_HELPER_H
#define DT_SPANK_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* The group nogroup. Processes of a user cannot trace a process of the same
 * user whose group they do not have. */
#define DT_HELPER_NOGROUP ((gid_t)65534)

struct dt_helper_user {
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary, all of them; NULL: gid alone */
    size_t ngroups;
};

struct dt_helper {
    char *const *argv; /* argv[0] is the program's path */
    int fd[3];         /* its descriptors 0, 1, 2; -1: /dev/null. None may be
                        * 0, 1 or 2 in this process. It gets no others */
    int cgroup;        /* an open cgroup.procs for it to enter; 0: none */
    char *const *env;  /* its environment; NULL: PATH, HOME, LC_ALL only */
    bool holds;        /* SIGTERM and SIGHUP are blocked in it, as Slurm may
                        * send them before it has its handlers */
    struct dt_helper_user user; /* ignored unless this process is root's */
};

/* Start it in a process group of its own. If this process is root's, the new
 * one drops all privileges. NOT_FOUND: there is no such program; SYSTEM. */
dt_result_t dt_helper_start(const struct dt_helper *how, pid_t *pid,
                            struct dt_error *err);

/* Wait at most ms for its end, then kill the rest of its group. false if it is
 * still running. *status is -1 if another thread has reaped it, as slurmstepd
 * does with any child. */
bool dt_helper_await(pid_t pid, int ms, int *status);

/* Kill its group, and wait a moment for it. A process that hangs in a driver
 * may stay until the caller ends. */
void dt_helper_kill(pid_t pid);

/* Run it to its end, at most limit_ms; how->fd is not used. err_fd, if not -1,
 * is its standard error; out, if not NULL, gets its output up to size - 1
 * bytes, and a NUL. Its exit status, or -1. */
int dt_helper_run(const struct dt_helper *how, int limit_ms, int err_fd,
                  char *out, size_t size);

/* Milliseconds until end, of CLOCK_MONOTONIC; 0 if it has passed. */
int dt_helper_ms_left(long long end);
long long dt_helper_end(int ms); /* ms from now */

/* A pipe, or a pair of SOCK_SEQPACKET sockets, close-on-exec and not 0, 1 or 2.
 */
bool dt_helper_pipe(int ends[2]);
bool dt_helper_socket(int ends[2]);

#endif
