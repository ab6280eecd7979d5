/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* allocator.c - the plugin in sbatch and salloc, which check the options and
 * hand them on to the sruns of the job. */
#include "spank_dt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void dt_allocator_init(struct spank_dt *dt)
{
    if (!strcmp(program_invocation_short_name, "sbatch"))
        dt_client_init(dt, DT_CLIENT_SBATCH);
    else if (!strcmp(program_invocation_short_name, "salloc"))
        dt_client_init(dt, DT_CLIENT_SALLOC);
}

void dt_allocator_init_post_opt(spank_t spank, struct spank_dt *dt)
{
    dt_client_done(dt);
    for (int id = 0; id < DT_NOPTIONS; id++) {
        const struct dt_option_name *name = &dt_option_name[id];
        if (!dt->given[id])
            continue;
        /* What was typed here is for the whole job: an srun in it must not
         * find the older wish of the environment it was submitted from. */
        unsetenv(name->variable[DT_CLIENT_SRUN]);
        if (dt->option[id].type == DT_OPTION_NONE) {
            /* as if it had not been given: take back what Slurm hands on */
            unsetenv(name->job_control);
            spank_job_control_unsetenv(spank, name->job_control);
        }
    }
}
