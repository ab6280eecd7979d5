/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* boot.c - the choice of the bootstrap: by PMIx if the launcher has a server of
 * it, else a job of one rank. */
#include "boot/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

dt_result_t dt_boot_open(struct dt_boot **boot, struct dt_error *err)
{
    bool server = getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
    return (server ? &dt_boot_pmix : &dt_boot_solo)->open(boot, err);
}

void dt_boot_node_name(char *name, size_t size)
{
    const char *slurm = getenv("SLURMD_NODENAME");
    if (slurm && *slurm)
        snprintf(name, size, "%s", slurm);
    else if (gethostname(name, size))
        snprintf(name, size, "localhost");
    name[size - 1] = 0;
}
