/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.c - the directories of the memory tier, which jobs that begin
 * and end make and remove beside each other. */
#include "ckpt/save/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tap.h"

enum { JOBS = 2, TIMES = 3000 };

/* The run of all of them, so that they meet there and in what is above it. */
static char run[32];

static char *new_dir(void)
{
    char *dir = strdup("/tmp/ckpt-memory.XXXXXX");
    if (!dir || !mkdtemp(dir))
        abort();
    return dir;
}

/* Begin and end so many times; how often was there no memory? */
static int work(const char *dir)
{
    int failed = 0;
    char *path = dt_memory_path(run, dir);
    for (int i = 0; path && i < TIMES; i++) {
        struct dt_error err = {0};
        int fd = -1;
        if (dt_memory_check(path, &err) != DT_SUCCESS ||
            dt_memory_open(path, &fd, &err) != DT_SUCCESS) {
            if (failed++ == 0)
                diag("time %d: %s", i, err.text);
            continue;
        }
        close(fd);
        dt_memory_remove(path);
        failed += *err.text != 0; /* said, and yet it was there */
    }
    free(path);
    return path ? failed : TIMES;
}

static void test_beside(void)
{
    char *dir[JOBS];
    pid_t pid[JOBS];
    int good = 0;
    for (int j = 0; j < JOBS; j++) {
        dir[j] = new_dir();
        pid[j] = fork();
        if (pid[j] == 0)
            _exit(work(dir[j]) > 0);
    }
    for (int j = 0; j < JOBS; j++) {
        int status;
        good += waitpid(pid[j], &status, 0) == pid[j] && status == 0;
        rmdir(dir[j]);
        free(dir[j]);
    }
    ok(good == JOBS, "jobs that end take nothing from those that begin");
}

static void test_removal(void)
{
    struct dt_error err = {0};
    char *dir = new_dir(), *path = dt_memory_path(run, dir);
    int fd = -1;
    ok(path && dt_memory_open(path, &fd, &err) == DT_SUCCESS &&
           access(path, F_OK) == 0,
       "it is made");
    close(fd);
    dt_memory_remove(path);
    *strrchr(path, '/') = '\0';
    ok(access(path, F_OK) != 0, "and removed, with the run's");
    free(path);
    rmdir(dir);
    free(dir);
}

int main(void)
{
    snprintf(run, sizeof(run), "ckpt-memory-%d", (int)getpid());
    test_removal();
    test_beside();
    return tap_done();
}
