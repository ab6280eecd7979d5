/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* helper.h - programs of ours that the plugin starts: as the job's user, with
 * nothing of the process that starts them. */
#ifndef DT_SPANK_HELPER_H
#define DT_SPANK_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Nobody's group. The processes of a user cannot trace one of his that has a
 * group that they do not have. */
#define DT_HELPER_NOGROUP ((gid_t)65534)

struct dt_helper_user {
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary, all of them; NULL: gid alone */
    size_t ngroups;
};

struct dt_helper {
    char *const *argv; /* argv[0] is the program's path */
    int fd[3];         /* its descriptors 0, 1, 2; -1 is /dev/null. It has no
                        * others. None may be one of 0, 1, 2 here */
    int cgroup;        /* a cgroup.procs, open, of which it is to be; 0: none */
    char *const *env;  /* its environment; NULL: one of its own */
    bool holds;        /* SIGTERM and SIGHUP, which Slurm may send before it is
                        * ready, wait until it unblocks them */
    struct dt_helper_user user; /* only root's processes become another */
};

/* Start it in a process group of its own. If this
 * process is root's, it gives that up for good. NOT_FOUND: it cannot be run;
 * SYSTEM. */
dt_result_t dt_helper_start(const struct dt_helper *how, pid_t *pid,
                            struct dt_error *err);

/* Wait at most ms for its end, then kill what it may have left in its group;
 * false if it goes on. *status is -1 if it was somebody else who waited for it,
 * as slurmstepd does for any child. */
bool dt_helper_await(pid_t pid, int ms, int *status);

/* Kill its group. A process inside a driver may not even die: it is left to
 * the caller's own end. */
void dt_helper_kill(pid_t pid);

/* Run it to its end, at most limit_ms; how->fd is not used. err_fd, if not -1,
 * is its standard error; out, if not NULL, gets its output up to size - 1
 * bytes, and a NUL. Its exit status, or -1. */
int dt_helper_run(const struct dt_helper *how, int limit_ms, int err_fd,
                  char *out, size_t size);

/* ms until end, of the monotonic clock; 0 if that is over. */
int dt_helper_ms_left(long long end);
long long dt_helper_end(int ms); /* ms from now */

/* Ends of a pipe, or of a socket of packets, that no program inherits by
 * chance and that are none of 0, 1, 2. */
bool dt_helper_pipe(int ends[2]);
bool dt_helper_socket(int ends[2]);

#endif
