/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* allocator.c - the plugin in sbatch and salloc, which check the option and
 * hand it on to the sruns of the job. */
#include "spank_dt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JOB_CONTROL "_SLURM_SPANK_OPTION_dt_dt_gpus"

void dt_allocator_init(struct spank_dt *dt)
{
    if (!strcmp(program_invocation_short_name, "sbatch"))
        dt_client_init(dt, "SBATCH_DT_GPUS");
    else if (!strcmp(program_invocation_short_name, "salloc"))
        dt_client_init(dt, "SALLOC_DT_GPUS");
}

void dt_allocator_init_post_opt(spank_t spank, struct spank_dt *dt)
{
    dt_client_done(dt);
    if (!dt->given)
        return;
    /* What was typed here is for the whole job: an srun in it must not find
     * the older wish of the environment it was submitted from. */
    unsetenv("SLURM_DT_GPUS");
    if (dt->option.type == DT_OPTION_NONE) {
        /* as if it had not been given: take back what Slurm hands on */
        unsetenv(JOB_CONTROL);
        spank_job_control_unsetenv(spank, JOB_CONTROL);
    }
}
