/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* interrupt.c - an end by ^C that leaves no unfinished files. */
#include "text/interrupt.h"

#include <signal.h>

/* a signal handler has no other way to report */
static volatile sig_atomic_t came;

static void remember(int number)
{
    came = number;
}

void interrupt_arm(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
        if (!sigaction(ending[i], NULL, &action) &&
            action.sa_handler != SIG_IGN) { /* as under nohup */
            action = (struct sigaction){.sa_handler = remember,
                                        .sa_flags = (int)SA_RESETHAND};
            sigaction(ending[i], &action, NULL);
        }
}

int interrupted(void)
{
    return came;
}

dt_result_t interrupt_check(struct dt_error *err)
{
    return came ? dt_error_set(err, DT_ERR_SYSTEM, "interrupted") : DT_SUCCESS;
}
