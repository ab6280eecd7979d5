/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client-control.c - modes of pmix-client: queries and job control. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

/* --- queries ------------------------------------------------------------- */

/* The table of ranks of a job as its users see it now. */
static int query_table(const char *key, const char *nspace,
                       pmix_data_array_t **table, pmix_info_t **info,
                       size_t *ninfo)
{
    pmix_query_t query;
    bool yes = true;
    int rc;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(rc, query.keys, key);
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 2);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_NSPACE, nspace, PMIX_STRING);
    /* or the library repeats an old answer */
    PMIX_INFO_LOAD(&query.qualifiers[1], PMIX_QUERY_REFRESH_CACHE, &yes,
                   PMIX_BOOL);
    rc = PMIx_Query_info(&query, 1, info, ninfo);
    PMIX_QUERY_DESTRUCT(&query);
    if (rc == PMIX_SUCCESS && *ninfo == 1 &&
        (*info)->value.type == PMIX_DATA_ARRAY)
        *table = (*info)->value.data.darray;
    return rc;
}

/* first: the state of rank 1; the others run. */
static void check_table(const char *key, pmix_proc_state_t first)
{
    bool local_only = strcmp(key, PMIX_QUERY_LOCAL_PROC_TABLE) == 0;
    uint32_t wanted = 0;
    pmix_data_array_t *table = NULL;
    pmix_info_t *info = NULL;
    size_t ninfo = 0;
    OK(query_table(key, self.nspace, &table, &info, &ninfo));
    for (pmix_rank_t r = 0; r < size; r++)
        wanted += !local_only || is_near(r);
    TRUE(table && table->type == PMIX_PROC_INFO && table->size == wanted);
    const pmix_proc_info_t *procs = table ? table->array : NULL;
    for (size_t i = 0; procs && i < table->size; i++) {
        pmix_rank_t r = procs[i].proc.rank;
        TRUE((local_only || r == i) && *procs[i].hostname &&
             strstr(procs[i].executable_name, "client"));
        TRUE(procs[i].state == (r == 1 ? first : PMIX_PROC_STATE_RUNNING));
    }
    PMIX_INFO_FREE(info, ninfo);
}

void table(void)
{
    pmix_data_array_t *none = NULL;
    pmix_info_t *info = NULL;
    size_t ninfo = 0, count = 0;
    pmix_proc_t living[64];
    listen_to(PMIX_EVENT_PROC_TERMINATED);
    check_table(PMIX_QUERY_PROC_TABLE, PMIX_PROC_STATE_RUNNING);
    check_table(PMIX_QUERY_LOCAL_PROC_TABLE, PMIX_PROC_STATE_RUNNING);
    IS(query_table(PMIX_QUERY_PROC_TABLE, "other job", &none, &info, &ninfo),
       PMIX_ERR_NOT_FOUND);
    OK(fence_all());
    if (self.rank == 1) {
        OK(PMIx_Finalize(NULL, 0));
        _exit(0);
    }
    wait_for(&received, 1);
    if (self.rank == 0)
        check_table(PMIX_QUERY_PROC_TABLE, PMIX_PROC_STATE_TERMINATED);
    /* the others are there until it has been seen */
    for (pmix_rank_t r = 0; r < size && r < 64; r++)
        if (r != 1)
            living[count++] = proc_of(r);
    OK(fence(living, count, false));
}

/* --- job control --------------------------------------------------------- */

static int control(const pmix_proc_t *target, const char *key, const void *data,
                   pmix_data_type_t type)
{
    pmix_info_t info, *results = NULL;
    size_t nresults = 0;
    PMIX_INFO_LOAD(&info, key, data, type);
    int rc =
        PMIx_Job_control(target, target ? 1 : 0, &info, 1, &results, &nresults);
    PMIX_INFO_FREE(results, nresults);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

void refusals(void)
{
    const bool yes = true;
    const int sig = SIGUSR1;
    pmix_proc_t first = proc_of(0);
    IS(control(NULL, PMIX_JOB_CTRL_PAUSE, &yes, PMIX_BOOL),
       PMIX_ERR_NOT_SUPPORTED);
    IS(control(&everybody, PMIX_JOB_CTRL_SIGNAL, &sig, PMIX_INT),
       PMIX_ERR_NOT_SUPPORTED);
    IS(control(&first, PMIX_JOB_CTRL_KILL, &yes, PMIX_BOOL),
       PMIX_ERR_NOT_SUPPORTED);
}

/* A file that shall go when its rank does. */
void cleanup(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/rank.%u", getenv("CLEANUP"), self.rank);
    FILE *file = fopen(path, "w");
    TRUE(file && fclose(file) == 0);
    OK(control(&self, PMIX_REGISTER_CLEANUP, path, PMIX_STRING));
    OK(fence_all());
}

void terminate(void)
{
    const bool yes = true;
    OK(fence_all());
    if (self.rank == 2)
        control(&everybody, PMIX_JOB_CTRL_TERMINATE, &yes, PMIX_BOOL);
    pause();
}
