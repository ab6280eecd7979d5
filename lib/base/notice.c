/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* notice.c - Slurm tells a task to leave by SIGTERM: preemption, scancel and
 * the time limit all begin with it. */
#include "base/notice.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t seen; /* a signal handler has no other place */

static void on_term(int signo)
{
    (void)signo;
    seen = 1;
}

void dt_notice_arm(void)
{
    struct sigaction old;
    if (sigaction(SIGTERM, NULL, &old) || old.sa_handler != SIG_DFL)
        return;
    struct sigaction sa = {.sa_handler = on_term, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &sa, NULL);
}

void dt_notice_disarm(void)
{
    struct sigaction old;
    if (sigaction(SIGTERM, NULL, &old) || old.sa_handler != on_term)
        return;
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigaction(SIGTERM, &sa, NULL);
}

bool dt_notice_seen(void)
{
    return seen;
}
