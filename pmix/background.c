/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* background.c - a process that goes on by itself. */
#include "background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

/* slurmstepd sends what is meant for the ranks to all processes of the step. We
 * end when the ranks have. What remains are faults of our own. */
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

/* slurmstepd's own is to be spared when memory runs out. */
static void be_mortal(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "0", 1) != 1) /* then we are spared */
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
    bool told = write(ends[1], "", 1) == 1;
    close(ends[1]);
    umask(077);
    ignore_signals();
    be_mortal();
    return told;
}
