/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* environ.c - the environment of the ranks. */
#include "server/environ.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Does this variable name a rank of another job: Slurm's step, another PMIx or
 * PMI server, mpirun or torchrun? */
static bool is_foreign(const char *entry)
{
    const char *const prefixes[] = {"PMIX_",
                                    "PMI_",
                                    "PMI2_",
                                    "SLURM_STEP",
                                    "SLURM_PROCID=",
                                    "SLURM_GTIDS=",
                                    "SLURM_LOCALID=",
                                    "SLURM_NODEID=",
                                    "SLURM_TASK_PID=",
                                    "SLURM_SRUN_",
                                    "SLURM_PMIX",
                                    "SLURM_PMI",
                                    "OMPI_COMM_WORLD",
                                    "OMPI_UNIVERSE_SIZE=",
                                    "JSM_"};
    if (begins(entry, "PMIX_MCA_"))
        return false;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
        if (begins(entry, prefixes[i]))
            return true;
    return false;
}

/* Open MPI 4 looks for a server only below a launcher that it knows, else each
 * process is a job of its own. Of those, IBM's jsrun is the only one whose
 * variable has no other effect; Slurm's or Flux's would make it connect to
 * them. Open MPI 5 and others need nothing. */
static const char for_openmpi[] = "JSM_JSRUN_PORT=0";

dt_result_t dt_environ_copy(char ***env, struct dt_error *err)
{
    size_t count = 0, room = 2;
    for (char **e = environ; *e; e++)
        room++;
    char **copy = calloc(room, sizeof(*copy));
    bool failed = !copy;
    for (char **e = environ; *e && !failed; e++)
        if (!is_foreign(*e))
            failed = !(copy[count++] = strdup(*e));
    if (!failed)
        failed = !(copy[count] = strdup(for_openmpi));
    if (failed) {
        dt_environ_free(copy);
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for the ranks' environment");
    }
    *env = copy;
    return DT_SUCCESS;
}

void dt_environ_free(char **env)
{
    for (char **e = env; e && *e; e++)
        free(*e);
    free(env);
}
