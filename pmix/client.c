/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.c - the life of one rank. */
#include "client.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "event.h"

/* PMIx sees a connection break within a millisecond, unless a child of the
 * rank keeps it open. */
#define LOSS_MS 1000

enum news { CONNECTED, FINALIZED, LOST };

struct client_call {
    struct dt_pmix_call call;
    enum news news;
    pmix_proc_t proc;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
};

static void run_client(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct client_call *self = (struct client_call *)call;
    size_t rank;
    if (dt_pmix_job_rank(&pmix->job, &self->proc, &rank)) {
        struct dt_pmix_client *client = &pmix->clients[rank];
        client->connected |= self->news == CONNECTED;
        client->finalized |= self->news == FINALIZED;
        client->lost |= self->news == LOST;
    }
    if (self->cbfunc)
        self->cbfunc(PMIX_SUCCESS, self->cbdata);
    free(self);
}

static pmix_status_t post(enum news news, const pmix_proc_t *proc,
                          pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct client_call *self = malloc(sizeof(*self));
    if (self)
        *self = (struct client_call){
            {NULL, run_client}, news, *proc, cbfunc, cbdata};
    return dt_pmix_post(self ? &self->call : NULL);
}

pmix_status_t dt_pmix_connected(const pmix_proc_t *proc, void *object,
                                pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object, (void)info, (void)ninfo, (void)cbfunc, (void)cbdata;
    /* PMIx 4.2 gives no callback to answer with, 5.0 takes both ways */
    pmix_status_t rc = post(CONNECTED, proc, NULL, NULL);
    return rc == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : rc;
}

pmix_status_t dt_pmix_finalized(const pmix_proc_t *proc, void *object,
                                pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object;
    return post(FINALIZED, proc, cbfunc, cbdata);
}

void dt_pmix_lost(const pmix_proc_t *proc)
{
    post(LOST, proc, NULL, NULL);
}

/* --- abort --------------------------------------------------------------- */

struct abort_call {
    struct dt_pmix_call call;
    pmix_proc_t proc;
    int status;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
    char text[];
};

static void run_abort(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct abort_call *self = (struct abort_call *)call;
    size_t rank;
    if (dt_pmix_job_rank(&pmix->job, &self->proc, &rank))
        pmix->launcher.abort(pmix->launcher.arg, rank, self->status,
                             self->text);
    self->cbfunc(PMIX_SUCCESS, self->cbdata);
    free(self);
}

pmix_status_t dt_pmix_abort(const pmix_proc_t *proc, void *object, int status,
                            const char msg[], pmix_proc_t procs[],
                            size_t nprocs, pmix_op_cbfunc_t cbfunc,
                            void *cbdata)
{
    /* to abort some ranks only is for the host to refuse: here it is all */
    (void)object, (void)procs, (void)nprocs;
    size_t len = msg ? strcspn(msg, "\n") : 0;
    struct abort_call *self = malloc(sizeof(*self) + len + 1);
    if (self) {
        *self = (struct abort_call){
            {NULL, run_abort}, *proc, status, cbfunc, cbdata};
        if (len)
            memcpy(self->text, msg, len);
        self->text[len] = '\0';
    }
    return dt_pmix_post(self ? &self->call : NULL);
}

/* --- the end ------------------------------------------------------------- */

void dt_pmix_ended(struct dt_pmix *pmix, size_t rank, int code)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    client->ended = true;
    client->code = code;
    client->due = dt_pmix_now() + LOSS_MS;
    /* what it said before it ended comes first */
    dt_pmix_queue_run(&pmix->queue, pmix);
    dt_pmix_clients_settle(pmix);
}

/* PMIx will not hear of this rank by itself any more. */
static bool silent(const struct dt_pmix_client *client)
{
    return !client->connected || client->finalized || client->lost;
}

static void deregistered(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
}

static void settle(struct dt_pmix *pmix, size_t rank)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    client->settled = true;
    if (!client->finalized)
        PMIx_server_deregister_client(&proc, deregistered, NULL);
    dt_pmix_store_forget(&pmix->store, rank);
    if (client->code)
        dt_pmix_notify_end(&proc, PMIX_ERR_PROC_ABORTED, client->code);
    else if (client->connected && !client->finalized)
        dt_pmix_notify_end(&proc, PMIX_ERR_PROC_TERM_WO_SYNC, 0);
    else
        dt_pmix_notify_end(&proc, PMIX_EVENT_PROC_TERMINATED, 0);
}

void dt_pmix_clients_settle(struct dt_pmix *pmix)
{
    for (size_t r = 0; r < pmix->job.size; r++) {
        const struct dt_pmix_client *client = &pmix->clients[r];
        if (client->ended && !client->settled &&
            (silent(client) || dt_pmix_now() >= client->due))
            settle(pmix, r);
    }
}

int64_t dt_pmix_clients_due(const struct dt_pmix *pmix)
{
    int64_t due = DT_NEVER;
    for (size_t r = 0; r < pmix->job.size; r++) {
        const struct dt_pmix_client *client = &pmix->clients[r];
        if (client->ended && !client->settled && client->due < due)
            due = client->due;
    }
    return due;
}

static bool is_dead(const struct dt_pmix *pmix, size_t rank)
{
    const struct dt_pmix_client *client = &pmix->clients[rank];
    return client->ended || (client->lost && !client->finalized);
}

bool dt_pmix_any_dead(const struct dt_pmix *pmix, const pmix_proc_t *procs,
                      size_t nprocs)
{
    const struct dt_pmix_job *job = &pmix->job;
    for (size_t i = 0; i < nprocs; i++) {
        size_t from = procs[i].rank, to = from + 1;
        if (strncmp(procs[i].nspace, job->nspace, PMIX_MAX_NSLEN) != 0)
            continue;
        if (procs[i].rank == PMIX_RANK_WILDCARD) {
            from = 0;
            to = job->size;
        }
        for (size_t r = from; r < to && r < job->size; r++)
            if (is_dead(pmix, r))
                return true;
    }
    return false;
}
