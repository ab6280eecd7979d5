/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* munged.h - a munged of a test's own. */
#ifndef MUNGED_H
#define MUNGED_H

#include <stdbool.h>
#include <sys/types.h>

struct munged {
    char dir[64], socket[128];
    pid_t pid;
};

/* False: there is none, or it does not start. It ends with this process. */
bool munged_start(struct munged *munged);
void munged_stop(struct munged *munged);

#endif
