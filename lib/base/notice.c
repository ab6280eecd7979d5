/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* notice.c - Slurm sends SIGTERM first at preemption, scancel and the time
 * limit. dt-requeue and the plugin write a file instead: a launcher between
 * Slurm and the program cannot keep it back, and it does not end the children
 * of a task. */
#include "base/notice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/env.h"

#define LOOK_EVERY 100000000 /* ns */

static volatile sig_atomic_t seen; /* written by the signal handler */
static char path[PATH_MAX];        /* of the file; "": none */
static bool watching;              /* there is a file, or an end of the job */
static _Atomic bool armed;
static _Atomic int64_t next_look;

static void on_term(int signo)
{
    (void)signo;
    seen = 1;
}

static void find(void)
{
    const char *given = getenv(DT_ENV_NOTICE);
    if (given)
        snprintf(path, sizeof path, "%s", given);
    bool ends = dt_deadline_left() >= 0; /* the first call reads it */
    watching = path[0] || ends;
}

void dt_notice_arm(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    armed = true;

    struct sigaction old;
    if (sigaction(SIGTERM, NULL, &old) || old.sa_handler != SIG_DFL)
        return;
    struct sigaction sa = {.sa_handler = on_term, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &sa, NULL);
}

void dt_notice_disarm(void)
{
    struct sigaction old;
    armed = false;
    if (sigaction(SIGTERM, NULL, &old) || old.sa_handler != on_term)
        return;
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigaction(SIGTERM, &sa, NULL);
}

/* Opened at each call and not mapped: a script may truncate it with `echo x >`
 * or rename another file to its name, and a mapping of a truncated file is
 * SIGBUS. */
static bool file_has_notice(void)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    char byte = 0;
    ssize_t n = read(fd, &byte, 1);
    close(fd);
    return n == 1 && byte;
}

bool dt_notice_seen(void)
{
    if (!armed || seen || !watching)
        return seen;
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    int64_t now = ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
    if (now < next_look)
        return false;
    next_look = now + LOOK_EVERY;
    int saved = errno;
    if (file_has_notice() || dt_deadline_near())
        seen = 1;
    errno = saved;
    return seen;
}
