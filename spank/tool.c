/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tool.c - run dt-requeue, with an end. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

/* What it prints is far less than a pipe holds. */
static void read_output(int fd, char *out, size_t size)
{
    size_t at = 0;
    ssize_t n;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (at + 1 < size && (n = read(fd, out + at, size - 1 - at)) > 0)
        at += (size_t)n;
    out[at] = '\0';
}

int dt_tool_run(const struct dt_helper *how, int limit_ms, int err_fd,
                char *out, size_t size)
{
    struct dt_helper helper = *how;
    int ends[2] = {-1, -1}, status = -1;
    int complaint = err_fd < 0 ? -1 : fcntl(err_fd, F_DUPFD_CLOEXEC, 3);
    pid_t pid;
    if (out && !dt_helper_pipe(ends))
        return -1;
    helper.fd[0] = -1;
    helper.fd[1] = ends[1];
    helper.fd[2] = complaint;
    dt_result_t rc = dt_helper_start(&helper, &pid, NULL);
    if (ends[1] >= 0)
        close(ends[1]);
    if (complaint >= 0)
        close(complaint);
    bool ended = rc == DT_SUCCESS && dt_helper_await(pid, limit_ms, &status);
    if (rc == DT_SUCCESS && !ended)
        dt_helper_kill(pid);
    if (out)
        read_output(ends[0], out, size);
    if (ends[0] >= 0)
        close(ends[0]);
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
