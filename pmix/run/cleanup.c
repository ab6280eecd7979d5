/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cleanup.c - a job's private directory, and its clean-up process. */
#include "run/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Rounds, 20 ms apart, in which the processes left of the job get a signal:
 * SIGTERM before the first of these, SIGKILL from the second on; the last is
 * the end. */
#define ROUND_WAIT 2
#define ROUND_KILL 50
#define ROUND_LAST 200

/* Does the file of NUL-terminated strings hold this one? */
static bool holds(FILE *file, const char *mark)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    while (!found && getdelim(&line, &room, '\0', file) > 0)
        found = strcmp(line, mark) == 0;
    free(line);
    return found;
}

static bool is_of_job(const char *pid, const char *mark)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is = fstat(fileno(file), &st) == 0 && st.st_uid == getuid() &&
              holds(file, mark);
    fclose(file);
    return is;
}

/* Send a signal to all processes of the job; returns how many there are. */
static size_t signal_job(const char *mark, int sig)
{
    size_t count = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (!isdigit((unsigned char)*entry->d_name) || pid == getpid() ||
            !is_of_job(entry->d_name, mark))
            continue;
        count++;
        if (sig)
            kill(pid, sig);
    }
    if (proc)
        closedir(proc);
    return count;
}

/* During execve() a process has no environment for a moment, so the job has
 * ended only when no process of it is found twice in a row. */
static void end_job(const char *mark)
{
    const struct timespec pause = {.tv_nsec = 20000000},
                          moment = {.tv_nsec = 2000000};
    bool gone = false;
    for (int round = 0; round < ROUND_LAST; round++) {
        int sig = round < ROUND_WAIT   ? SIGTERM
                  : round < ROUND_KILL ? 0
                                       : SIGKILL;
        bool before = gone;
        gone = signal_job(mark, sig) == 0;
        if (gone && before)
            return;
        nanosleep(gone ? &moment : &pause, NULL);
    }
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *where)
{
    (void)st, (void)type, (void)where;
    remove(path);
    return 0;
}

static void clean_up(const struct dt_cleanup *cleanup, int fd, const char *mark)
{
    /* signals from the terminal or for the job are not meant for it */
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "dt-keeper");
    /* a reader of our parent's output must not wait for this process */
    if (dup2(fd, 0) < 0 || close_range(1, ~0U, 0))
        _exit(1);
    if (chdir("/"))
        _exit(1);
    char byte;
    while (read(0, &byte, 1) > 0 || errno == EINTR)
        errno = 0;
    end_job(mark);
    nftw(cleanup->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static dt_result_t make_directory(struct dt_cleanup *cleanup,
                                  struct dt_error *err)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || *tmp != '/')
        tmp = "/tmp";
    int len = snprintf(cleanup->directory, sizeof(cleanup->directory),
                       "%s/dt-run-XXXXXX", tmp);
    if (len < 0 || (size_t)len >= sizeof(cleanup->directory))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "TMPDIR is too long a path");
    if (!mkdtemp(cleanup->directory))
        return dt_error_set(err, DT_ERR_IO,
                            "no directory can be made in %s: %s; set TMPDIR "
                            "to one of your own",
                            tmp, strerror(errno));
    return DT_SUCCESS;
}

dt_result_t dt_cleanup_open(struct dt_cleanup *cleanup, const char *mark,
                            struct dt_error *err)
{
    int fds[2];
    dt_result_t rc = make_directory(cleanup, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (pipe2(fds, O_CLOEXEC)) {
        rc = dt_error_set(err, DT_ERR_SYSTEM, "pipe: %s", strerror(errno));
        goto remove_directory;
    }
    cleanup->pid = fork();
    if (cleanup->pid == 0)
        clean_up(cleanup, fds[0], mark);
    close(fds[0]);
    if (cleanup->pid < 0) {
        rc = dt_error_set(err, DT_ERR_SYSTEM, "fork: %s", strerror(errno));
        goto close_pipe;
    }
    cleanup->fd = fds[1];
    return DT_SUCCESS;

close_pipe:
    close(fds[1]);
remove_directory:
    rmdir(cleanup->directory);
    return rc;
}

void dt_cleanup_close(struct dt_cleanup *cleanup)
{
    close(cleanup->fd);
    while (waitpid(cleanup->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
