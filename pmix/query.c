/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* query.c - PMIx_Query_info. */
#include "query.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "info.h"

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

static bool answer(const struct dt_pmix_job *job, const char *key,
                   struct dt_pmix_infos *to)
{
    const pmix_status_t running = PMIX_SUCCESS;
    if (strcmp(key, PMIX_QUERY_NAMESPACES) == 0)
        dt_pmix_info_add(to, key, job->nspace, PMIX_STRING);
    else if (strcmp(key, PMIX_QUERY_JOB_STATUS) == 0)
        dt_pmix_info_add(to, key, &running, PMIX_STATUS);
    else if (strcmp(key, PMIX_QUERY_SPAWN_SUPPORT) == 0)
        dt_pmix_info_add(to, key, "", PMIX_STRING);
    else
        return false;
    return true;
}

static void run_query(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct query *self = (struct query *)call;
    size_t asked = 0, answered = 0;
    for (size_t q = 0; q < self->nqueries; q++) {
        char **keys = self->queries[q].keys;
        for (size_t k = 0; keys && keys[k]; k++) {
            asked++;
            answered += answer(&pmix->job, keys[k], &self->answers);
        }
    }
    self->status = self->answers.failed ? PMIX_ERR_NOMEM
                   : answered == asked  ? PMIX_SUCCESS
                   : answered           ? PMIX_QUERY_PARTIAL_SUCCESS
                                        : PMIX_ERR_NOT_SUPPORTED;
    dt_pmix_in_library(reply, self);
}

pmix_status_t dt_pmix_query(pmix_proc_t *proc, pmix_query_t *queries,
                            size_t nqueries, pmix_info_cbfunc_t cbfunc,
                            void *cbdata)
{
    (void)proc;
    struct query *self = malloc(sizeof(*self));
    if (self)
        *self = (struct query){.call = {NULL, run_query},
                               .queries = queries,
                               .nqueries = nqueries,
                               .cbfunc = cbfunc,
                               .cbdata = cbdata};
    return dt_pmix_post(self ? &self->call : NULL);
}
