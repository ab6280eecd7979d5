/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* boot.c - which kind of job is this? */
#include "boot/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct dt_boot_ops *const kinds[] = {
    &dt_boot_pmix, &dt_boot_solo, /* detects always */
};

dt_result_t dt_boot_open(struct dt_boot **boot, struct dt_error *err)
{
    size_t i = 0;
    while (!kinds[i]->detect())
        i++;
    return kinds[i]->open(boot, err);
}

dt_result_t dt_boot_no_news(struct dt_boot *boot, int patience,
                            struct dt_error *err)
{
    (void)boot, (void)patience, (void)err;
    return DT_SUCCESS;
}

void dt_boot_no_farewell(struct dt_boot *boot, long timeout)
{
    (void)boot, (void)timeout;
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
