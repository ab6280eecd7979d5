/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* other_pmi.c - does a rank use PMI-1 or PMI-2? */
#include "daemon/other_pmi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_of(pid_t pid, const char *file)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, file);
    return fopen(path, "re");
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The name of MPICH in Debian and elsewhere, where Open MPI's is libmpi.so.40,
 * and of Slurm's two libraries. */
static bool needs_pmi(const char *library)
{
    return begins(library, "libmpich.so") || begins(library, "libmpi.so.12") ||
           begins(library, "libpmi.so") || begins(library, "libpmi2.so");
}

static bool is_served(pid_t pid)
{
    char *entry = NULL;
    size_t room = 0;
    bool served = false;
    FILE *env = open_of(pid, "environ");
    while (env && !served && getdelim(&entry, &room, '\0', env) > 0)
        served = begins(entry, "PMI_FD=") || begins(entry, "PMI_PORT=") ||
                 begins(entry, "PMI2_FD=");
    if (env)
        fclose(env);
    free(entry);
    return served;
}

bool dt_other_pmi(pid_t pid, char *name, size_t size)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false, pmix = false;
    FILE *maps = open_of(pid, "maps");
    while (maps && !pmix && getline(&line, &room, maps) > 0) {
        const char *slash = strrchr(line, '/');
        const char *library = slash ? slash + 1 : "";
        pmix = begins(library, "libpmix.so");
        if (!found && needs_pmi(library)) {
            found = true;
            snprintf(name, size, "%.*s", (int)strcspn(library, " \n"), library);
        }
    }
    if (maps)
        fclose(maps);
    free(line);
    return found && !pmix && !is_served(pid);
}
