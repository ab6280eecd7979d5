/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.c - the option as srun, sbatch and salloc read it. */
#include "spank_dt.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Where Slurm looks for an option before it reads the command line, and where
 * sbatch and salloc leave theirs for the sruns of the job. */
#define INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_dt_dt_gpus"

void dt_client_init(struct spank_dt *dt, const char *variable)
{
    const char *value = getenv(variable);
    if (value && *value && setenv(INHERITED, value, 1) == 0)
        dt->input = variable;
}

void dt_client_done(struct spank_dt *dt)
{
    if (dt->input)
        unsetenv(INHERITED);
    dt->input = NULL;
}

int dt_client_option(struct spank_dt *dt, const char *text)
{
    /* Slurm hands us the variable's very string, or the command line's. */
    bool from_input = dt->input && text == getenv(INHERITED);
    struct dt_option option;
    struct dt_error err;
    if (dt_option_parse(text, from_input ? dt->input : "--dt-gpus", &option,
                        &err) != DT_SUCCESS) {
        slurm_error("dt: %s", err.text);
        return -1;
    }
    if (option.type == DT_OPTION_HELP) {
        fputs(dt_option_help(), stdout);
        fflush(stdout);
        /* As srun does for --mpi=list. A callback can only go on or fail, and
         * neither is an answer to a question. Nothing is allocated yet. */
        _exit(0);
    }
    if (option.type != DT_OPTION_NONE && *dt->bad_argument.text) {
        slurm_error("dt: %s", dt->bad_argument.text);
        return -1;
    }
    dt->given = true;
    dt->option = option;
    return 0;
}
