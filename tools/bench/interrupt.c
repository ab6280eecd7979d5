/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* interrupt.c - end the process on ^C, at once and with one line. */
#include <signal.h>
#include <unistd.h>

#include "bench.h"

/* A signal handler has no argument of ours. */
static volatile sig_atomic_t speaks;

static void end(int number)
{
    static const char text[] = "\ndt-bench: interrupted\n";
    if (speaks)
        (void)!write(STDERR_FILENO, text + !isatty(STDERR_FILENO),
                     sizeof(text) - 1 - !isatty(STDERR_FILENO));
    _exit(128 + number);
}

void interrupt_arm(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
        if (!sigaction(ending[i], NULL, &action) &&
            action.sa_handler != SIG_IGN) { /* as under nohup */
            action = (struct sigaction){.sa_handler = end};
            sigaction(ending[i], &action, NULL);
        }
}

void interrupt_speaks(bool rank0)
{
    speaks = rank0;
}
