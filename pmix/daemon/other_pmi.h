/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* other_pmi.h - does a rank use PMI-1 or PMI-2, as MPICH does, where only PMIx
 * is served? Then it finds no other rank, and is a world of its own. */
#ifndef DT_PMIX_OTHER_PMI_H
#define DT_PMIX_OTHER_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Has the process loaded a library that needs PMI-1 or PMI-2, and none of PMIx,
 * and does nobody serve it those? name gets the library's. What it loads is
 * known only some time after its start; a child of it is not looked at. */
bool dt_other_pmi(pid_t pid, char *name, size_t size);

#endif
