/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.c - the options as srun, sbatch and salloc read them. */
#include "spank_dt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dt_client_init(struct spank_dt *dt, enum dt_client client)
{
    for (int id = 0; id < DT_NOPTIONS; id++) {
        const struct dt_option_name *name = &dt_option_name[id];
        const char *value = getenv(name->variable[client]);
        if (value && *value && setenv(name->inherited, value, 1) == 0)
            dt->input[id] = name->variable[client];
    }
}

void dt_client_done(struct spank_dt *dt)
{
    for (int id = 0; id < DT_NOPTIONS; id++) {
        if (dt->input[id])
            unsetenv(dt_option_name[id].inherited);
        dt->input[id] = NULL;
    }
}

int dt_client_option(struct spank_dt *dt, enum dt_option_id id,
                     const char *text)
{
    const struct dt_option_name *name = &dt_option_name[id];
    /* An inherited value is the string of the variable itself. */
    bool inherited = text && text == getenv(name->inherited);
    char source[64];
    snprintf(source, sizeof(source), "--%s", name->option);
    struct dt_option option;
    struct dt_error err;
    if (dt_option_parse(id, text,
                        inherited && dt->input[id] ? dt->input[id] : source,
                        &option, &err) != DT_SUCCESS) {
        slurm_error("dt: %s", err.text);
        return -1;
    }
    if (option.type == DT_OPTION_HELP) {
        fputs(dt_option_help(id), stdout);
        fflush(stdout);
        /* As srun does for --mpi=list: a callback cannot end srun with 0.
         * Nothing is allocated yet. */
        _exit(0);
    }
    if (option.type != DT_OPTION_NONE && *dt->bad_argument.text) {
        slurm_error("dt: %s", dt->bad_argument.text);
        return -1;
    }
    dt->given[id] = true;
    dt->typed[id] = !inherited;
    if (!inherited) {
        free(dt->part[id]);
        dt->part[id] = strdup(text ? text : "");
    }
    dt->option[id] = option;
    dt_allocator_option(dt);
    return 0;
}
