/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* background.h - put this process into the background, where it has a log. */
#ifndef DT_PMIX_BACKGROUND_H
#define DT_PMIX_BACKGROUND_H

#include <stdbool.h>

/* Continue in a process of init's, in a session of its own, with umask 077 and
 * all signals ignored that slurmstepd may send to the ranks; it leaves no core
 * file, and /proc shows what it has to root only. The calling process ends with
 * 0 when that is done. False: there can be no process. */
bool dt_background(void);

/* A line for the administrator, in the system's log. */
void dt_background_log(const char *line);

#endif
