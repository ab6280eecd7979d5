/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* replacement.c - PMIx removes the old process of a rank, counts the new one,
 * and expects it: in this order, each step in PMIx's thread. */
#include "server/server.h"

#include <stdlib.h>
#include <unistd.h>

#include "server/client.h"
#include "server/server_state.h"

struct step_call {
    struct dt_pmix_call call;
    size_t rank;
    pmix_status_t status;
};

static void begin_step(struct dt_pmix *pmix, struct step_call *self);

static void run_step(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct step_call *self = (struct step_call *)call;
    struct dt_pmix_client *client = &pmix->clients[self->rank];
    if (self->status == PMIX_SUCCESS) {
        client->replacement++;
        begin_step(pmix, self);
    } else {
        client->replacement = DT_REPLACE_FAILED;
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

/* Begin the step that the rank is at. */
static void begin_step(struct dt_pmix *pmix, struct step_call *self)
{
    struct dt_pmix_client *client = &pmix->clients[self->rank];
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)self->rank);
    pmix_status_t rc = PMIX_SUCCESS;
    switch (client->replacement) {
    case DT_REPLACE_DEREGISTER:
        PMIx_server_deregister_client(&proc, step_done, self);
        return;
    case DT_REPLACE_REGISTER:
        free(client->kept);
        *client = (struct dt_pmix_client){.replacement = DT_REPLACE_REGISTER};
        dt_pmix_clients_count(pmix);
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
    if (client->replacement == DT_REPLACE_READY)
        return DT_SUCCESS;
    if (client->replacement == DT_REPLACE_FAILED) {
        client->replacement = DT_REPLACE_NONE;
        return dt_error_set(
            err, DT_ERR_BOOTSTRAP,
            "PMIx does not accept a replacement of rank %zu: %s", rank,
            PMIx_Error_string(client->refusal));
    }
    if (client->replacement == DT_REPLACE_NONE && !client->reported)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "rank %zu has not ended: it cannot be replaced",
                            rank);
    if (client->replacement == DT_REPLACE_NONE && client->settled &&
        !client->proxy_client && !client->connections) {
        struct step_call *self = malloc(sizeof(*self));
        if (!self)
            return dt_error_set(err, DT_ERR_NO_MEMORY,
                                "no memory to replace rank %zu", rank);
        *self = (struct step_call){{NULL, run_step}, rank, PMIX_SUCCESS};
        client->replacement = DT_REPLACE_DEREGISTER;
        begin_step(pmix, self);
    }
    if (client->connections && !client->proxy_client)
        return dt_error_set(err, DT_IN_PROGRESS,
                            "a child of the old rank %zu keeps its connection "
                            "to PMIx open: end it",
                            rank);
    return dt_error_set(err, DT_IN_PROGRESS,
                        "PMIx still removes the old rank %zu", rank);
}
