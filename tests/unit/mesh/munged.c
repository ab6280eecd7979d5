/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* munged.c - a munged of a test's own. */
#include "munged.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const files[] = {
    "munge.sock", "munge.sock.lock", "key", "pid", "log", "seed"};

static bool make_key(const char *path)
{
    char key[128]; /* what another one vouches for is worth nothing here */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool good = fd >= 0 && getrandom(key, sizeof(key), 0) == sizeof(key) &&
                write(fd, key, sizeof(key)) == sizeof(key);
    if (fd >= 0)
        close(fd);
    return good;
}

static void become_munged(const struct munged *munged)
{
    char option[6][128];
    static const char *const names[6] = {"socket", "key-file", "pid-file",
                                         "log-file", "seed-file"};
    static const char *const at[6] = {"munge.sock", "key", "pid", "log",
                                      "seed"};
    for (int i = 0; i < 5; i++)
        snprintf(option[i], sizeof(option[i]), "--%s=%.60s/%s", names[i],
                 munged->dir, at[i]);
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("PATH", "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin", 1);
    execlp("munged", "munged", "--foreground", "--force", option[0], option[1],
           option[2], option[3], option[4], (char *)NULL);
    _exit(127);
}

bool munged_start(struct munged *munged)
{
    char key[128];
    struct stat st;
    *munged = (struct munged){"/tmp/dt-munged-XXXXXX", "", -1};
    if (!mkdtemp(munged->dir))
        return false;
    /* another user of a test must reach the socket */
    chmod(munged->dir, 0755);
    snprintf(munged->socket, sizeof(munged->socket), "%s/munge.sock",
             munged->dir);
    snprintf(key, sizeof(key), "%s/key", munged->dir);
    if (!make_key(key) || (munged->pid = fork()) < 0) {
        munged_stop(munged);
        return false;
    }
    if (munged->pid == 0)
        become_munged(munged);
    for (int i = 0; i < 12000; i++) {
        if (stat(munged->socket, &st) == 0)
            return true;
        if (waitpid(munged->pid, NULL, WNOHANG) == munged->pid) {
            munged->pid = -1;
            break;
        }
        usleep(10000);
    }
    munged_stop(munged);
    return false;
}

void munged_stop(struct munged *munged)
{
    char path[128];
    if (munged->pid > 0) {
        kill(munged->pid, SIGTERM);
        waitpid(munged->pid, NULL, 0);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%.60s/%s", munged->dir, files[i]);
        unlink(path);
    }
    rmdir(munged->dir);
    munged->pid = -1;
}
