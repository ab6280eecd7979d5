/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* background.c - put this process into the background, where it has a log. */
#include "daemon/background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

/* slurmstepd sends signals for the ranks to all processes of the step. This one
 * ends when the ranks have. Only faults of its own keep their effect. */
static void ignore_signals(void)
{
    const int faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS,
                          SIGFPE, SIGSEGV, SIGSYS};
    sigset_t kept;
    sigemptyset(&kept);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigaddset(&kept, faults[i]);
    for (int sig = 1; sig <= SIGRTMAX; sig++)
        if (!sigismember(&kept, sig))
            signal(sig, SIG_IGN);
}

/* It is inherited from slurmstepd, which the OOM killer is to spare. */
static void reset_oom_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "0", 1) != 1) /* then it spares this one, too */
        errno = 0;
    close(fd);
}

bool dt_background(void)
{
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid < 0)
        return false;
    if (pid > 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
    }
    close(ends[0]);
    setsid();
    bool done = write(ends[1], "", 1) == 1;
    close(ends[1]);
    umask(077);
    ignore_signals();
    reset_oom_score();
    prctl(PR_SET_DUMPABLE, 0);
    return done;
}

void dt_background_log(const char *line)
{
    syslog(LOG_DAEMON | LOG_NOTICE, "%s", line);
}
