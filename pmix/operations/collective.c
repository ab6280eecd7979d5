/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* collective.c - a collective operation of ranks. */
#include "operations/collective.h"

#include <stdlib.h>
#include <string.h>

#include "server/client.h"
#include "server/info.h"
#include "server/server_state.h"

/* What PMIx found while it waited for the ranks of this node. */
static pmix_status_t local_status(const struct dt_pmix_collective *collective)
{
    const pmix_value_t *value = dt_pmix_info_find(
        collective->info, collective->ninfo, PMIX_LOCAL_COLLECTIVE_STATUS);
    return value && value->type == PMIX_STATUS ? value->data.status
                                               : PMIX_SUCCESS;
}

static void finish(struct dt_pmix *pmix, struct dt_pmix_collective *collective,
                   pmix_status_t status)
{
    if (status != PMIX_SUCCESS) {
        free(collective->data);
        collective->data = NULL;
        collective->len = 0;
    }
    collective->done(pmix, collective, status);
}

/* --- the ranks that take part -------------------------------------------- */

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static size_t sort_unique(uint32_t *ranks, size_t count)
{
    size_t kept = 0;
    qsort(ranks, count, sizeof(*ranks), compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    return kept;
}

static bool names_all(const struct dt_pmix_collective *self)
{
    for (size_t i = 0; i < self->nprocs; i++)
        if (self->procs[i].rank == PMIX_RANK_WILDCARD)
            return true;
    return false;
}

/* All ranks that procs name, in rising order, in *ranks, from malloc. */
static pmix_status_t expand(const struct dt_pmix_job *job,
                            const struct dt_pmix_collective *self,
                            uint32_t **ranks, size_t *count)
{
    bool all = names_all(self);
    size_t room = all ? job->size : self->nprocs;
    for (size_t i = 0; i < self->nprocs; i++) {
        size_t rank;
        if (strncmp(self->procs[i].nspace, job->nspace, PMIX_MAX_NSLEN) != 0 ||
            (self->procs[i].rank != PMIX_RANK_WILDCARD &&
             !dt_pmix_job_rank(job, &self->procs[i], &rank)))
            return PMIX_ERR_BAD_PARAM;
    }
    uint32_t *list = malloc((room ? room : 1) * sizeof(*list));
    if (!list)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < room; i++)
        list[i] = all ? (uint32_t)i : self->procs[i].rank;
    *count = sort_unique(list, room);
    *ranks = list;
    return PMIX_SUCCESS;
}

/* --- with other nodes ---------------------------------------------------- */

static pmix_status_t status_of(dt_result_t rc)
{
    switch (rc) {
    case DT_SUCCESS:
        return PMIX_SUCCESS;
    case DT_ERR_PROC_FAILED:
        return PMIX_ERR_PROC_ABORTED;
    case DT_ERR_TIMED_OUT:
        return PMIX_ERR_TIMEOUT;
    case DT_ERR_NO_MEMORY:
        return PMIX_ERR_NOMEM;
    default:
        return PMIX_ERROR;
    }
}

static void collected(void *arg, dt_result_t rc, const void *data, size_t len)
{
    struct dt_pmix_collective *self = arg;
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
    pmix_status_t status = status_of(rc);
    if (status == PMIX_SUCCESS && len) {
        self->data = malloc(len);
        if (self->data)
            memcpy(self->data, data, len);
        else
            status = PMIX_ERR_NOMEM;
        self->len = len;
    }
    finish(self->pmix, self, status);
}

/* Combine the parts of all nodes. */
static void combine(struct dt_pmix *pmix, struct dt_pmix_collective *self,
                    const uint32_t *ranks, size_t nranks)
{
    const struct dt_collective what = {self->what, self->name ? self->name : "",
                                       ranks, nranks};
    long seconds =
        dt_pmix_info_number(self->info, self->ninfo, PMIX_TIMEOUT, 0);
    char *part = self->data;
    size_t len = self->len;
    self->data = NULL;
    self->len = 0;
    self->pmix = pmix;
    self->next = pmix->collectives;
    self->link = &pmix->collectives;
    if (self->next)
        self->next->link = &self->next;
    pmix->collectives = self;
    dt_mesh_collect(pmix->mesh, &what, part, len,
                    seconds > 0 ? (int64_t)seconds * 1000 : 0, collected, self);
    free(part);
}

/* --- start ---------------------------------------------------------------- */

static void run_collective(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_collective *self = (struct dt_pmix_collective *)call;
    uint32_t *ranks = NULL;
    size_t nranks = 0;
    pmix_status_t status = expand(&pmix->job, self, &ranks, &nranks);
    if (status == PMIX_SUCCESS && (local_status(self) != PMIX_SUCCESS ||
                                   dt_pmix_any_dead(pmix, ranks, nranks)))
        status = PMIX_ERR_PROC_ABORTED;
    if (status == PMIX_SUCCESS && self->prepare)
        status = self->prepare(pmix, self);
    if (status == PMIX_SUCCESS)
        combine(pmix, self, ranks, nranks);
    else
        finish(pmix, self, status);
    free(ranks);
}

pmix_status_t dt_pmix_collective_start(struct dt_pmix_collective *collective)
{
    if (!collective)
        return PMIX_ERR_NOMEM;
    collective->delayed.call.run = run_collective;
    dt_pmix_after_losses(&collective->delayed);
    return PMIX_SUCCESS;
}

void dt_pmix_collectives_free(struct dt_pmix *pmix)
{
    struct dt_pmix_collective *all = pmix->collectives, *next;
    for (; all; all = next) {
        next = all->next;
        free(all->data);
        free(all);
    }
}
