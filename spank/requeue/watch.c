/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watch.c - the plugin's end of the socket to dt-requeue _watch. */
#include "requeue/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROOM_MS = 1000, END_MS = 1000 };

/* The freezer's line in the list of a process's cgroups, of version 1. */
static bool find_freezer(const char *pid, char path[PATH_MAX])
{
    static const char freezer[] = ":freezer:";
    char line[PATH_MAX];
    const char *at = NULL;
    snprintf(line, sizeof(line), "/proc/%s/cgroup", pid);
    FILE *file = fopen(line, "re");
    while (file && !at && fgets(line, sizeof(line), file))
        at = strstr(line, freezer);
    if (at) {
        at += sizeof(freezer) - 1;
        snprintf(path, PATH_MAX, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (file)
        fclose(file);
    return at;
}

/* With cgroups of version 1, Slurm finds the processes of a step in the
 * freezer, where slurmstepd is not; with version 2 it signals the children of
 * slurmstepd, too. *fd is 0 if there is no cgroup to enter. */
static dt_result_t open_freezer(pid_t leader, int *fd, struct dt_error *err)
{
    char own[PATH_MAX], theirs[PATH_MAX], path[PATH_MAX + 64], pid[16];
    *fd = 0;
    snprintf(pid, sizeof(pid), "%d", (int)leader);
    if (!find_freezer("self", own) || !find_freezer(pid, theirs) ||
        !strcmp(own, theirs))
        return DT_SUCCESS;
    snprintf(path, sizeof(path), "/sys/fs/cgroup/freezer%s/cgroup.procs",
             theirs);
    int opened = open(path, O_WRONLY | O_CLOEXEC);
    if (opened < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "%.256s: %s", path,
                            strerror(errno));
    *fd = opened;
    return DT_SUCCESS;
}

dt_result_t dt_watch_start(struct dt_watch *watch, const struct dt_helper *how,
                           pid_t leader, struct dt_error *err)
{
    struct dt_helper helper = *how;
    int ends[2] = {-1, -1};
    watch->tried = true;
    dt_result_t rc = open_freezer(leader, &helper.cgroup, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (dt_helper_socket(ends)) {
        helper.fd[0] = ends[1];
        helper.fd[1] = helper.fd[2] = -1;
        rc = dt_helper_start(&helper, &watch->pid, err);
    } else {
        rc = dt_error_set(err, DT_ERR_SYSTEM, "cannot create a socket: %s",
                          strerror(errno));
    }
    if (helper.cgroup)
        close(helper.cgroup);
    if (ends[1] >= 0)
        close(ends[1]);
    if (rc == DT_SUCCESS)
        watch->fd = ends[0];
    else if (ends[0] >= 0)
        close(ends[0]);
    return rc;
}

static bool send_descriptor(int socket, int fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {(char *)"", 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct pollfd room = {socket, POLLOUT, 0};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    return poll(&room, 1, ROOM_MS) == 1 &&
           sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

dt_result_t dt_watch_add(struct dt_watch *watch, pid_t leader,
                         struct dt_error *err)
{
    if (!watch->fd || watch->added == leader)
        return DT_SUCCESS;
    watch->added = leader;
    watch->running++;
    int fd = (int)syscall(SYS_pidfd_open, leader, 0);
    bool sent = fd >= 0 && send_descriptor(watch->fd, fd);
    dt_result_t rc =
        sent ? DT_SUCCESS
             : dt_error_set(err, DT_ERR_SYSTEM, "%s: %s",
                            fd < 0 ? "pidfd_open" : "sendmsg", strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

void dt_watch_ended(struct dt_watch *watch, pid_t leader)
{
    if (!watch->fd || watch->ended == leader)
        return;
    watch->ended = leader;
    if (--watch->running == 0)
        dt_watch_end(watch);
}

void dt_watch_end(struct dt_watch *watch)
{
    int status;
    if (!watch->fd)
        return;
    shutdown(watch->fd, SHUT_RDWR); /* whoever else may have it open */
    close(watch->fd);
    watch->fd = 0;
    if (!dt_helper_await(watch->pid, END_MS, &status))
        dt_helper_kill(watch->pid);
}
