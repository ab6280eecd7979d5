/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* query.c - PMIx_Query_info, of this job only:
 *
 *   PMIX_QUERY_NAMESPACES        its name
 *   PMIX_QUERY_JOB_STATUS        PMIX_SUCCESS: it runs
 *   PMIX_QUERY_PROC_TABLE        an array of pmix_proc_info_t: each rank, its
 *   PMIX_QUERY_LOCAL_PROC_TABLE  host, program, exit code, and state; pid 0.
 *                                LOCAL: those of this node
 *   PMIX_QUERY_SPAWN_SUPPORT     "": there is none
 *   DT_MEET_KEY                  alone: who goes on, base/meet.h
 *   PMIX_REINCARNATION           uint32_t, with PMIX_RANK: that rank's
 *                                incarnation
 *
 * Clients ask with PMIX_QUERY_REFRESH_CACHE, or PMIx may repeat an old answer.
 *
 * PMIX_QUERY_PARTIAL_SUCCESS or PMIX_ERR_NOT_SUPPORTED: some key, or every one,
 * is not in this list; PMIX_ERR_NOT_FOUND: another job. */
#include <stdlib.h>
#include <string.h>

#include "operations/meet.h"
#include "operations/operations.h"
#include "server/info.h"
#include "server/library.h"
#include "server/server_state.h"

struct query {
    struct dt_pmix_call call;
    const pmix_query_t *queries;
    size_t nqueries;
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
    pmix_status_t status;
    struct dt_pmix_infos answers;
};

static void release(void *arg)
{
    struct query *self = arg;
    dt_pmix_info_free(&self->answers);
    free(self);
}

static void reply(pmix_status_t status, void *arg)
{
    struct query *self = arg;
    (void)status;
    self->cbfunc(self->status, self->answers.all, self->answers.count,
                 self->cbdata, release, self);
}

/* --- the table of ranks -------------------------------------------------- */

static pmix_proc_state_t state_of(const struct dt_mesh_rank *rank)
{
    if (!rank->ended)
        return PMIX_PROC_STATE_RUNNING;
    if (rank->how == DT_END_NODE)
        return PMIX_PROC_STATE_COMM_FAILED;
    if (rank->how == DT_END_STOPPED)
        return PMIX_PROC_STATE_HEARTBEAT_FAILED;
    if (rank->code > 128)
        return PMIX_PROC_STATE_ABORTED_BY_SIG;
    if (rank->code)
        return PMIX_PROC_STATE_TERM_NON_ZERO;
    return rank->finalized ? PMIX_PROC_STATE_TERMINATED
                           : PMIX_PROC_STATE_TERM_WO_SYNC;
}

/* to: zeroed. */
static bool describe(const struct dt_pmix *pmix, size_t rank,
                     pmix_proc_info_t *to)
{
    const struct dt_pmix_job *job = &pmix->job;
    const struct dt_mesh_rank *known = dt_mesh_rank(pmix->mesh, rank);
    PMIX_LOAD_PROCID(&to->proc, job->nspace, (pmix_rank_t)rank);
    to->hostname = strdup(job->map->entry[job->map->node_of[rank]].name);
    to->executable_name = strndup(job->command, strcspn(job->command, " "));
    to->exit_code = known->code;
    to->state = state_of(known);
    return to->hostname && to->executable_name;
}

static void add_table(const struct dt_pmix *pmix, const char *key,
                      bool local_only, struct dt_pmix_infos *to)
{
    const struct dt_pmix_job *job = &pmix->job;
    pmix_data_array_t array = {.type = PMIX_PROC_INFO};
    pmix_proc_info_t *table = calloc(job->size, sizeof(*table));
    to->failed |= !table;
    array.array = table;
    for (size_t r = 0; table && r < job->size; r++)
        if (!local_only || job->map->node_of[r] == job->self)
            to->failed |= !describe(pmix, r, &table[array.size++]);
    dt_pmix_info_add(to, key, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

/* --- questions ----------------------------------------------------------- */

static bool is_of_other_job(const struct dt_pmix_job *job,
                            const pmix_query_t *query)
{
    const pmix_value_t *value =
        dt_pmix_info_find(query->qualifiers, query->nqual, PMIX_NSPACE);
    return value && value->type == PMIX_STRING && value->data.string &&
           strcmp(value->data.string, job->nspace) != 0;
}

static pmix_status_t add_incarnation(const struct dt_pmix *pmix,
                                     const char *key, const pmix_query_t *query,
                                     struct dt_pmix_infos *to)
{
    const pmix_value_t *value =
        dt_pmix_info_find(query->qualifiers, query->nqual, PMIX_RANK);
    if (!value || value->type != PMIX_PROC_RANK ||
        value->data.rank >= pmix->job.size)
        return PMIX_ERR_NOT_FOUND;
    dt_pmix_info_add_uint32(
        to, key, dt_mesh_rank(pmix->mesh, value->data.rank)->incarnation);
    return PMIX_SUCCESS;
}

static pmix_status_t answer(const struct dt_pmix *pmix, const char *key,
                            const pmix_query_t *query, struct dt_pmix_infos *to)
{
    const pmix_status_t running = PMIX_SUCCESS;
    const bool other = is_of_other_job(&pmix->job, query);
    const bool local = strcmp(key, PMIX_QUERY_LOCAL_PROC_TABLE) == 0;
    const bool table = local || strcmp(key, PMIX_QUERY_PROC_TABLE) == 0;
    const bool incarnation = strcmp(key, PMIX_REINCARNATION) == 0;
    if (strcmp(key, PMIX_QUERY_NAMESPACES) == 0)
        dt_pmix_info_add(to, key, pmix->job.nspace, PMIX_STRING);
    else if (strcmp(key, PMIX_QUERY_SPAWN_SUPPORT) == 0)
        dt_pmix_info_add(to, key, "", PMIX_STRING);
    else if (!table && !incarnation && strcmp(key, PMIX_QUERY_JOB_STATUS) != 0)
        return PMIX_ERR_NOT_SUPPORTED;
    else if (other)
        return PMIX_ERR_NOT_FOUND;
    else if (incarnation)
        return add_incarnation(pmix, key, query, to);
    else if (table)
        add_table(pmix, key, local, to);
    else
        dt_pmix_info_add(to, key, &running, PMIX_STATUS);
    return PMIX_SUCCESS;
}

static void met(void *arg, bool ended)
{
    struct query *self = arg;
    if (self->answers.failed)
        self->status = PMIX_ERR_NOMEM;
    if (!ended) {
        dt_pmix_in_library(reply, self);
        return;
    }
    /* PMIx would write to the rank's connection, which is closed: it keeps what
     * it has of the query for ever instead */
    release(self);
}

static void run_query(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct query *self = (struct query *)call;
    size_t answered = 0;
    self->status = PMIX_SUCCESS;
    if (dt_pmix_is_meet(self->queries, self->nqueries)) {
        dt_pmix_meet(pmix, self->queries, &self->answers, met, self);
        return;
    }
    for (size_t q = 0; q < self->nqueries; q++) {
        char **keys = self->queries[q].keys;
        for (size_t k = 0; keys && keys[k]; k++) {
            pmix_status_t rc =
                answer(pmix, keys[k], &self->queries[q], &self->answers);
            answered += rc == PMIX_SUCCESS;
            if (rc != PMIX_SUCCESS)
                self->status = rc;
        }
    }
    if (self->answers.failed)
        self->status = PMIX_ERR_NOMEM;
    else if (self->status != PMIX_SUCCESS && answered)
        self->status = PMIX_QUERY_PARTIAL_SUCCESS;
    dt_pmix_in_library(reply, self);
}

static pmix_status_t query(pmix_proc_t *proc, pmix_query_t *queries,
                           size_t nqueries, pmix_info_cbfunc_t cbfunc,
                           void *cbdata)
{
    (void)proc; /* PMIx's library itself, whichever rank asks */
    struct query *self = malloc(sizeof(*self));
    if (self)
        *self = (struct query){.call = {NULL, run_query},
                               .queries = queries,
                               .nqueries = nqueries,
                               .cbfunc = cbfunc,
                               .cbdata = cbdata};
    return dt_pmix_post(self ? &self->call : NULL);
}

static void fill(pmix_server_module_t *module)
{
    module->query = query;
}

const struct dt_pmix_operation dt_pmix_op_query = {.fill = fill};
