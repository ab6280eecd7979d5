/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* daemon.c - dt-pmixd, from the plugin's end: ranks and supervisors come and go
 * in greater number than it, and slurmstepd, may have descriptors. */
#include "server/daemon.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/step.h"

#include "../descriptors.h"
#include "../tap.h"

enum { RANKS = 40, FILES = 40, LIMIT_MS = 60000 };

static char build[PATH_MAX];

static void set_variables(const struct dt_daemon *daemon, uint32_t rank)
{
    const char *value, *at = daemon->env;
    char name[4096], number[16];
    while (dt_daemon_variable(&at, name, sizeof(name), &value))
        setenv(name, value, 1);
    snprintf(number, sizeof(number), "%u", (unsigned)rank);
    setenv("PMIX_RANK", number, 1);
}

/* A rank that connects and ends well. */
static bool run_rank(struct dt_daemon *daemon, uint32_t rank)
{
    char program[PATH_MAX + 32];
    int status = -1;
    snprintf(program, sizeof(program), "%s/tests/unit/pmix/client", build);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(LIMIT_MS / 1000); /* kept by the program */
        set_variables(daemon, rank);
        if (!freopen("/dev/null", "w", stdout))
            _exit(1);
        execl(program, program, "hello", NULL);
        _exit(127);
    }
    dt_daemon_notify_started(daemon, rank, pid);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    dt_daemon_receive(daemon, NULL);
    if (status)
        diag("rank %u: status %#x", (unsigned)rank, (unsigned)status);
    return !status;
}

/* A supervisor that asks for what is not possible, and goes. */
static bool ask(const struct sockaddr_un *at)
{
    const struct timeval limit = {.tv_sec = LIMIT_MS / 1000};
    char answer[256] = "";
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool answered =
        fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
        send(fd, "replace 99999 1", 15, MSG_NOSIGNAL) == 15 &&
        recv(fd, answer, sizeof(answer) - 1, 0) > 0 &&
        !strncmp(answer, "error ", 6);
    if (!answered)
        diag("\"%s\", %s", answer, strerror(errno));
    if (fd >= 0)
        close(fd);
    return answered;
}

static struct sockaddr_un find_control(const struct dt_daemon *daemon)
{
    struct sockaddr_un control = {.sun_family = AF_UNIX};
    const char *value, *at = daemon->env;
    char name[4096];
    while (dt_daemon_variable(&at, name, sizeof(name), &value))
        if (!strcmp(name, DT_ENV_PMIX_CONTROL) &&
            strlen(value) < sizeof(control.sun_path))
            memcpy(control.sun_path, value, strlen(value) + 1);
    return control;
}

static void configure(const struct dt_daemon *daemon, char *config, size_t size)
{
    snprintf(config, size,
             "version %d\njob 1\nstep 0\nnode 0\nnodes 1\nname n0\n"
             "ranks %d\nlocal 0-%d\ndirectory %s\nheartbeat 30\n"
             "limit 60\nauth native\ncommand test\n",
             DT_STEP_VERSION, RANKS, RANKS - 1, daemon->directory);
}

static void come_and_go(struct dt_daemon *daemon)
{
    const struct sockaddr_un control = find_control(daemon);
    int answered = 0, well = 0;
    for (int rank = 0; rank < RANKS && well == rank && answered == rank;
         rank++) {
        well += run_rank(daemon, (uint32_t)rank);
        answered += well > rank && ask(&control);
        if (rank < RANKS - 1)
            dt_daemon_notify_ended(daemon, (uint32_t)rank, 0);
    }
    ok(well == RANKS, "%d of %d ranks connect, one after the other", well,
       RANKS);
    ok(answered == RANKS, "%d of %d supervisors are answered", answered, RANKS);
}

int main(void)
{
    struct dt_daemon daemon = {.user = {getuid(), getgid(), NULL, 0}};
    struct rlimit files;
    struct dt_error err = {""};
    char program[PATH_MAX + 32], config[1024];
    const char *top = getenv("DT_BUILD");
    snprintf(build, sizeof(build), "%s", top ? top : ".");
    snprintf(program, sizeof(program), "%s/pmix/dt-pmixd", build);
    daemon.program = program;
    daemon.running = RANKS;
    snprintf(daemon.directory, sizeof(daemon.directory),
             "/tmp/" DT_STEP_DIRECTORY "%d.0-fds", (int)getpid());
    configure(&daemon, config, sizeof(config));
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = FILES; /* which the daemon inherits */
    if (access(program, X_OK) != 0 || setrlimit(RLIMIT_NOFILE, &files) != 0)
        return skip_all("no pmix/dt-pmixd, or no limit of descriptors");
    int before = descriptors_of(getpid());
    if (ok(dt_daemon_start(&daemon, config, LIMIT_MS, &err) == DT_SUCCESS,
           "with %d descriptors it starts %s", FILES, err.text))
        come_and_go(&daemon);
    ok(daemon.fd && dt_daemon_notify_ended(&daemon, RANKS - 1, 0),
       "the last rank has ended");
    dt_daemon_end(&daemon, NULL);
    ok(descriptors_of(getpid()) == before &&
           access(daemon.directory, F_OK) != 0,
       "the plugin has as many descriptors as before, and nothing is left");
    return tap_done();
}
