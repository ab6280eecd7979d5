/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* again.c - a rank that comes back. */
#include "again.h"

#include <stdlib.h>
#include <unistd.h>

#include "core.h"
#include "info.h"

struct step_call {
    struct dt_pmix_call call;
    size_t rank;
    pmix_status_t status;
};

static void take(struct dt_pmix *pmix, struct step_call *self);

static void run_step(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct step_call *self = (struct step_call *)call;
    struct dt_pmix_client *client = &pmix->clients[self->rank];
    if (self->status == PMIX_SUCCESS) {
        client->again++;
        take(pmix, self);
    } else {
        client->again = DT_AGAIN_FAILED;
        client->refusal = self->status;
        free(self);
    }
}

/* In PMIx's thread. */
static void step_done(pmix_status_t status, void *arg)
{
    struct step_call *self = arg;
    self->status = status;
    dt_pmix_post(&self->call);
}

/* --- the count ----------------------------------------------------------- */

struct count_call {
    struct dt_pmix_call call;
    unsigned rounds;
    pmix_info_t info; /* PMIx reads it in its own thread */
};

/* In PMIx's thread. */
static void counted(pmix_status_t status, void *arg)
{
    (void)status;
    dt_pmix_post(arg);
}

/* A loss that PMIx saw before it was told our count is known to us only when
 * PMIx has come back to its event loop. */
static void run_count(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct count_call *self = (struct count_call *)call;
    if (++self->rounds < DT_ROUNDS) {
        dt_pmix_in_library(counted, self);
        return;
    }
    pmix->counting--;
    free(self);
}

/* PMIx never raises its count of this node's ranks by itself, and lowers it
 * only for those that it has lost. */
void dt_pmix_again_count(struct dt_pmix *pmix)
{
    const bool yes = true;
    struct count_call *self = malloc(sizeof(*self));
    if (!self)
        return; /* who waits for the rank may do so for ever */
    *self = (struct count_call){.call = {NULL, run_count}};
    pmix->counting++;
    PMIX_INFO_LOAD(&self->info, PMIX_REGISTER_NODATA, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_server_register_nspace(
        pmix->job.nspace, (int)dt_pmix_clients_count(pmix), &self->info, 1,
        counted, self);
    if (rc != PMIX_SUCCESS)
        counted(rc, self);
}

void dt_pmix_again_recount(struct dt_pmix *pmix)
{
    if (pmix->counting)
        dt_pmix_again_count(pmix);
}

/* --- the rank ------------------------------------------------------------ */

/* Do the step that the rank is at. */
static void take(struct dt_pmix *pmix, struct step_call *self)
{
    struct dt_pmix_client *client = &pmix->clients[self->rank];
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)self->rank);
    pmix_status_t rc = PMIX_SUCCESS;
    switch (client->again) {
    case DT_AGAIN_FORGET:
        PMIx_server_deregister_client(&proc, step_done, self);
        return;
    case DT_AGAIN_EXPECT:
        *client = (struct dt_pmix_client){.again = DT_AGAIN_EXPECT};
        dt_pmix_again_count(pmix);
        rc = PMIx_server_register_client(&proc, getuid(), getgid(), NULL,
                                         step_done, self);
        break;
    default: /* READY */
        free(self);
        return;
    }
    if (rc != PMIX_SUCCESS)
        step_done(rc, self);
}

dt_result_t dt_pmix_replace(struct dt_pmix *pmix, size_t rank,
                            struct dt_error *err)
{
    if (rank >= pmix->job.size ||
        pmix->job.map->node_of[rank] != pmix->job.self)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "rank %zu is not one of this node", rank);
    struct dt_pmix_client *client = &pmix->clients[rank];
    if (client->again == DT_AGAIN_READY)
        return DT_SUCCESS;
    if (client->again == DT_AGAIN_FAILED) {
        client->again = DT_AGAIN_NONE;
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "PMIx does not take rank %zu again: %s", rank,
                            PMIx_Error_string(client->refusal));
    }
    if (client->again == DT_AGAIN_NONE && !client->told)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "rank %zu has not ended: it cannot be replaced",
                            rank);
    if (client->again == DT_AGAIN_NONE && client->settled &&
        !client->stand_in && !client->connections) {
        struct step_call *self = malloc(sizeof(*self));
        if (!self)
            return dt_error_set(err, DT_ERR_NO_MEMORY,
                                "no memory to replace rank %zu", rank);
        *self = (struct step_call){{NULL, run_step}, rank, PMIX_SUCCESS};
        client->again = DT_AGAIN_FORGET;
        take(pmix, self);
    }
    if (client->connections && !client->stand_in)
        return dt_error_set(err, DT_IN_PROGRESS,
                            "a child of the old rank %zu still has its "
                            "connection: end it",
                            rank);
    return dt_error_set(err, DT_IN_PROGRESS,
                        "PMIx is still forgetting the old rank %zu", rank);
}
