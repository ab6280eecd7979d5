/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* allocator.c - the plugin in sbatch and salloc, which check the options and
 * hand them on to the sruns of the job. */
#include "spank_dt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char open_mode[] = "SBATCH_OPEN_MODE";

/* A job that runs again goes on in its log, unless the user says otherwise.
 * sbatch reads this variable between the lines of the script and the command
 * line. */
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

/* Is it on the command line? An argument of the script's own with that name
 * looks the same, and does as little harm. */
static bool is_typed(const char *option)
{
    size_t length = strlen(option), size = 0;
    bool typed = false;
    char *word = NULL;
    FILE *line = fopen("/proc/self/cmdline", "re");
    while (line && !typed && getdelim(&word, &size, '\0', line) > 0 &&
           strcmp(word, "--") != 0)
        typed = !strncmp(word, "--", 2) && !strncmp(word + 2, option, length) &&
                (!word[2 + length] || word[2 + length] == '=') &&
                strcmp(word + 2 + length, "=none") != 0;
    free(word);
    if (line)
        fclose(line);
    return typed;
}

static void init_sbatch(struct spank_dt *dt)
{
    const struct dt_option_name *name = &dt_option_name[DT_OPTION_REQUEUE];
    const char *value = getenv(name->variable[DT_CLIENT_SBATCH]);
    dt->is_sbatch = true;
    dt_client_init(dt, DT_CLIENT_SBATCH);
    if ((value && *value && strcmp(value, "none") != 0) ||
        is_typed(name->option))
        append(dt);
}

void dt_allocator_init(struct spank_dt *dt)
{
    if (!strcmp(program_invocation_short_name, "sbatch"))
        init_sbatch(dt);
    else if (!strcmp(program_invocation_short_name, "salloc"))
        dt_client_init(dt, DT_CLIENT_SALLOC);
}

void dt_allocator_init_post_opt(spank_t spank, struct spank_dt *dt)
{
    dt_client_done(dt);
    if (dt->appends)
        unsetenv(open_mode);
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
