/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.c - the processes of a job on this machine. */
#include "run/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

dt_result_t dt_ranks_open(struct dt_ranks *ranks, size_t count,
                          const sigset_t *mask, struct dt_error *err)
{
    *ranks = (struct dt_ranks){.count = count, .mask = *mask};
    ranks->pids = calloc(count, sizeof(*ranks->pids));
    if (!ranks->pids)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ranks",
                            count);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &ranks->files))
        return dt_error_set(err, DT_ERR_SYSTEM, "getrlimit: %s",
                            strerror(errno));
    files = ranks->files;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    return DT_SUCCESS;
}

void dt_ranks_close(struct dt_ranks *ranks)
{
    free(ranks->pids);
    *ranks = (struct dt_ranks){0};
}

/* In the child, which shares nothing with PMIx's thread but its locks: only
 * system calls here. Returns only when something failed, with errno. */
static void become(const struct dt_ranks *ranks, size_t rank,
                   const struct dt_rank_start *start, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
        _exit(1);
    if (rank > 0) {
        int null = open("/dev/null", O_RDONLY);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
            return;
    }
    if ((start->out >= 0 && dup2(start->out, STDOUT_FILENO) < 0) ||
        (start->err >= 0 && dup2(start->err, STDERR_FILENO) < 0))
        return;
    /* before Linux 5.11 the ranks may inherit some */
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    setrlimit(RLIMIT_NOFILE, &ranks->files);
    /* where it fails a CPU went offline, and the rank runs wherever it can */
    if (CPU_COUNT(&start->cpus))
        sched_setaffinity(0, sizeof(start->cpus), &start->cpus);
    sigprocmask(SIG_SETMASK, &ranks->mask, NULL);
    execvpe(start->argv[0], start->argv, start->env);
}

static dt_result_t explain(const char *program, int errnum,
                           struct dt_error *err)
{
    bool missing = errnum == ENOENT || errnum == ENOTDIR;
    return dt_error_set(err, missing ? DT_ERR_NOT_FOUND : DT_ERR_IO, "%s: %s",
                        program, strerror(errnum));
}

dt_result_t dt_ranks_start(struct dt_ranks *ranks, size_t rank,
                           const struct dt_rank_start *start,
                           struct dt_error *err)
{
    int fds[2], errnum = 0;
    pid_t parent = getpid();
    if (pipe2(fds, O_CLOEXEC))
        return dt_error_set(err, DT_ERR_SYSTEM, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        become(ranks, rank, start, parent);
        errnum = errno;
        ssize_t ignored = write(fds[1], &errnum, sizeof(errnum));
        (void)ignored;
        _exit(127);
    }
    int fork_errnum = errno;
    close(fds[1]);
    /* the pipe closes when the program runs */
    ssize_t got = 0;
    while (pid > 0 && (got = read(fds[0], &errnum, sizeof(errnum))) < 0 &&
           errno == EINTR)
        ;
    close(fds[0]);
    if (pid < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "rank %zu: fork: %s", rank,
                            strerror(fork_errnum));
    if (got > 0) {
        waitpid(pid, NULL, 0);
        return explain(start->argv[0], errnum, err);
    }
    ranks->pids[rank] = pid;
    ranks->running++;
    return DT_SUCCESS;
}

void dt_ranks_signal(const struct dt_ranks *ranks, int sig)
{
    for (size_t r = 0; r < ranks->count; r++)
        if (ranks->pids[r] > 0)
            kill(ranks->pids[r], sig);
}

bool dt_ranks_reap(struct dt_ranks *ranks, size_t *rank, int *code)
{
    for (size_t r = 0; r < ranks->count; r++) {
        int status;
        if (ranks->pids[r] <= 0 ||
            waitpid(ranks->pids[r], &status, WNOHANG) <= 0)
            continue;
        ranks->pids[r] = 0;
        ranks->running--;
        *rank = r;
        *code =
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return true;
    }
    return false;
}
