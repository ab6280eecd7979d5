/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.c - the plugin in srun. */
#include "spank_dt.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"
#include "grant.h"
#include "table.h"

void dt_local_init(struct spank_dt *dt)
{
    dt_client_init(dt, DT_CLIENT_SRUN);
}

void dt_local_init_post_opt(struct spank_dt *dt)
{
    dt_client_done(dt);
    for (int id = 0; id < DT_NOPTIONS; id++)
        if (dt->typed[id] && !dt->given[DT_OPTION_GPUS]) {
            slurm_error("dt: --%s says nothing without --dt-gpus: add "
                        "--dt-gpus, or leave it out",
                        dt_option_name[id].option);
            /* srun does not heed the failure of an optional plugin here, and
             * nothing is allocated yet */
            _exit(255);
        }
}

/* Slurm replaces the user's CUDA_VISIBLE_DEVICES on the way to the tasks, so
 * it travels under another name. */
static void carry_visible(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && *visible && !getenv(DT_ENV_VERSION) &&
        !dt_grant_is_slurms(visible, getenv("SLURM_STEP_GPUS"),
                            getenv("SLURM_JOB_GPUS")))
        setenv(DT_ENV_USER_VISIBLE, visible, 1);
    else
        unsetenv(DT_ENV_USER_VISIBLE);
}

/* The header comes from here, before any task starts, so that it is printed
 * once and first. */
void dt_local_user_init(spank_t spank, const struct spank_dt *dt)
{
    const struct dt_option *gpus = &dt->option[DT_OPTION_GPUS];
    if (gpus->type != DT_OPTION_SET || !dt_is_task_step(spank))
        return;
    carry_visible();
    if (!gpus->verbose)
        return;
    struct dt_table table = dt_table_widths(environ);
    dt_table_print_header(&table, stderr);
}
