/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* helper.c - start a program as the job's user, and wait for it with a limit.
 */
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_MS = 100, CANNOT_RUN = 127 };

/* ---- the child, between fork and exec: async-signal-safe calls only ---- */

static void close_from(unsigned first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 1 << 20)
        limit.rlim_cur = 1 << 20;
    for (unsigned fd = first; fd < limit.rlim_cur; fd++)
        close((int)fd);
}

/* Neither a real nor a saved id may stay root's. */
static bool become(const struct dt_helper_user *user)
{
    const gid_t *groups = user->ngroups ? user->groups : &user->gid;
    if (getuid() != 0)
        return true;
    return seteuid(0) == 0 &&
           setgroups(user->ngroups ? user->ngroups : 1, groups) == 0 &&
           setresgid(user->gid, user->gid, user->gid) == 0 &&
           setresuid(user->uid, user->uid, user->uid) == 0;
}

static bool set_descriptors(const int fd[3])
{
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        if (dup2(fd[i] < 0 ? null : fd[i], i) < 0)
            return false;
    close_from(3);
    return true;
}

static void child(const struct dt_helper *how)
{
    char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"HOME=/",
                         (char *)"LC_ALL=C", NULL};
    const struct rlimit no_core = {0, 0};
    sigset_t held;
    sigemptyset(&held);
    if (how->holds) {
        sigaddset(&held, SIGTERM);
        sigaddset(&held, SIGHUP);
    }
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &no_core);
    if (how->cgroup && write(how->cgroup, "0", 1) != 1)
        _exit(CANNOT_RUN);
    if (!set_descriptors(how->fd))
        _exit(CANNOT_RUN);
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &held, NULL);
    if (chdir("/") != 0 || !become(&how->user))
        _exit(CANNOT_RUN);
    execve(how->argv[0], how->argv, how->env ? how->env : env);
    _exit(CANNOT_RUN);
}

/* ---- the parent ---- */

dt_result_t dt_helper_start(const struct dt_helper *how, pid_t *pid,
                            struct dt_error *err)
{
    if (access(how->argv[0], X_OK) != 0)
        return dt_error_set(err, DT_ERR_NOT_FOUND, "%s: %s", how->argv[0],
                            strerror(errno));
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t started = fork();
    if (started == 0)
        child(how);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s cannot be run: %s",
                            how->argv[0], strerror(errno));
    setpgid(started, started); /* it may not have got there yet */
    *pid = started;
    return DT_SUCCESS;
}

/* The number of the group is not used anew until the process is reaped. */
static bool reap(pid_t pid, int *status)
{
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        if (!info.si_pid)
            return false;
        kill(-pid, SIGKILL);
        if (waitpid(pid, status, 0) == pid)
            return true;
    }
    *status = -1;
    return true;
}

bool dt_helper_await(pid_t pid, int ms, int *status)
{
    long long end = dt_helper_end(ms);
    while (!reap(pid, status)) {
        if (!dt_helper_ms_left(end))
            return false;
        poll(NULL, 0, 1);
    }
    return true;
}

void dt_helper_kill(pid_t pid)
{
    int status;
    kill(-pid, SIGKILL);
    dt_helper_await(pid, GRACE_MS, &status);
}

/* The output is far less than a pipe holds, so it is read after the end. */
static void read_output(int fd, char *out, size_t size)
{
    size_t at = 0;
    ssize_t n;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (at + 1 < size && (n = read(fd, out + at, size - 1 - at)) > 0)
        at += (size_t)n;
    out[at] = '\0';
}

int dt_helper_run(const struct dt_helper *how, int limit_ms, int err_fd,
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

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

long long dt_helper_end(int ms)
{
    return now() + ms;
}

int dt_helper_ms_left(long long end)
{
    long long left = end - now();
    return left < 0 ? 0 : (int)left;
}

/* Not 0, 1 or 2, which the child overwrites one by one. */
static bool raise_both(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] < 3) {
            int high = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
            close(ends[i]);
            ends[i] = high;
        }
    return ends[0] >= 0 && ends[1] >= 0;
}

bool dt_helper_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC) == 0 && raise_both(ends);
}

bool dt_helper_socket(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 &&
           raise_both(ends);
}
