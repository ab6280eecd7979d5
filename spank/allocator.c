/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* allocator.c - the plugin in sbatch and salloc: they check the options, and
 * the sruns of the job inherit them. */
#include "spank_dt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elastic.h"

static const char open_mode[] = "SBATCH_OPEN_MODE";

/* The log of a requeued job is appended to, unless the user has set another
 * mode. sbatch reads this variable between the lines of the script and the
 * command line. */
static void append(struct spank_dt *dt)
{
    if (!dt->appends && !getenv(open_mode))
        dt->appends = setenv(open_mode, "append", 1) == 0;
}

void dt_allocator_option(struct spank_dt *dt)
{
    if (dt->is_sbatch && dt->option[DT_OPTION_REQUEUE].type == DT_OPTION_SET)
        append(dt);
}

static void init_sbatch(struct spank_dt *dt)
{
    const struct dt_option_name *name = &dt_option_name[DT_OPTION_REQUEUE];
    const char *value = getenv(name->variable[DT_CLIENT_SBATCH]);
    dt->is_sbatch = true;
    dt_client_init(dt, DT_CLIENT_SBATCH);
    /* an argument of the script that looks alike does no harm: the log is
     * appended to */
    if ((value && *value && strcmp(value, "none") != 0) ||
        dt_client_typed(DT_OPTION_REQUEUE) == DT_TYPED_VALUE)
        append(dt);
    dt_elastic_init(dt, DT_CLIENT_SBATCH);
}

void dt_allocator_init(struct spank_dt *dt)
{
    if (!strcmp(program_invocation_short_name, "sbatch"))
        init_sbatch(dt);
    else if (!strcmp(program_invocation_short_name, "salloc")) {
        dt_client_init(dt, DT_CLIENT_SALLOC);
        dt_elastic_init(dt, DT_CLIENT_SALLOC);
    }
}

void dt_allocator_init_post_opt(spank_t spank, struct spank_dt *dt)
{
    dt_client_done(dt);
    dt_elastic_done(dt);
    if (dt->appends)
        unsetenv(open_mode);
    /* that of the job in which sbatch runs; Slurm sets it from the second run
     * on only */
    if (dt->is_sbatch && dt->given[DT_OPTION_REQUEUE])
        unsetenv("SLURM_RESTART_COUNT");
    for (int id = 0; id < DT_NOPTIONS; id++) {
        const struct dt_option_name *name = &dt_option_name[id];
        if (!dt->given[id])
            continue;
        /* An option of sbatch counts for the whole job, more than the variable
         * for srun in the environment from which it is submitted. */
        unsetenv(name->variable[DT_CLIENT_SRUN]);
        if (dt->option[id].type == DT_OPTION_NONE) {
            /* none: the sruns of the job must not inherit it */
            unsetenv(name->job_control);
            spank_job_control_unsetenv(spank, name->job_control);
        }
    }
}
