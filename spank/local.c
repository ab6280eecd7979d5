/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.c - the plugin in srun. */
#include "spank_dt.h"

#include <unistd.h>

#include "table.h"

void dt_local_init(struct spank_dt *dt)
{
    dt_client_init(dt, "SLURM_DT_GPUS");
}

/* The header comes from here, before any task starts, so that it is printed
 * once and first. */
void dt_local_user_init(spank_t spank, const struct spank_dt *dt)
{
    if (dt->option.type != DT_OPTION_GPUS || !dt->option.verbose ||
        !dt_is_task_step(spank))
        return;
    struct dt_table table = dt_table_widths(environ);
    dt_table_print_header(&table, stderr);
}
