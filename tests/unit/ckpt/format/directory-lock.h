/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory-lock.h - a directory that jobs of a test take. */
#ifndef CKPT_GUARD_H
#define CKPT_GUARD_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/format/directory_lock.h"
#include "../../tap.h"

static char dir[64];
static int dirfd = -1;

static inline void begin(void)
{
    strcpy(dir, "/tmp/ckpt-lock-XXXXXX");
    if (!mkdtemp(dir) || (dirfd = open(dir, O_RDONLY | O_DIRECTORY)) < 0)
        abort();
}

static inline void end(void)
{
    unlinkat(dirfd, ".lock", 0);
    unlinkat(dirfd, ".lock", AT_REMOVEDIR);
    unlinkat(dirfd, "victim", 0);
    close(dirfd);
    ok(rmdir(dir) == 0, "nothing else is left in the directory");
}

static inline const char *contents(void)
{
    static char text[4096];
    int fd = openat(dirfd, ".lock", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return text;
}

static inline void put(const char *name, const char *text, size_t len)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd))
        abort();
}

static struct dt_directory_lock *guard;
static struct dt_error err;

static inline dt_result_t take_as(const char *job, const char *run, int restart)
{
    setenv("SLURM_JOB_ID", job, 1);
    guard = NULL;
    err.text[0] = '\0';
    return dt_directory_lock_take(dirfd, dir, run, restart, &guard, &err);
}

static inline dt_result_t take(void)
{
    return take_as("4711", "run", 0);
}

/* What a child is answered; the child's is gone with it. */
static inline dt_result_t child_takes(const char *job, const char *run,
                                      int restart)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dt_result_t rc = take_as(job, run, restart);
        dt_directory_lock_release(guard);
        _exit(-rc);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        abort();
    return (dt_result_t)-WEXITSTATUS(status);
}

#endif
