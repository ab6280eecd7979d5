/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.c - the life of one rank. */
#include "client.h"

#include <stdlib.h>

#include "again.h"
#include "core.h"
#include "news.h"
#include "standin.h"

/* PMIx sees a connection break within a millisecond, unless a child of the
 * rank keeps it open. */
#define LOSS_MS 1000
/* A rank's connection breaks when it dies, and then the launcher knows more. */
#define WORD_MS     50
#define STAND_IN_MS 5000

enum news { CONNECTED, FINALIZED, LOST };

struct client_call {
    struct dt_pmix_call call;
    enum news news;
    pmix_proc_t proc;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
};

static void hear(struct dt_pmix *pmix, size_t rank, enum news news)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    switch (news) {
    case CONNECTED:
        client->connections++;
        if (client->stand_in)
            break;
        client->connected = true;
        client->finalized = false;
        if (client->again != DT_AGAIN_READY)
            break;
        client->again = DT_AGAIN_NONE;
        dt_mesh_rank_joined(pmix->mesh, rank);
        break;
    case FINALIZED:
        client->finalized = true;
        client->connections -= client->connections > 0;
        break;
    case LOST:
        client->connections -= client->connections > 0;
        if (!client->told)
            client->due = dt_pmix_now() + WORD_MS;
        /* of one that had two connections PMIx has counted two losses */
        if (client->lost) {
            dt_pmix_again_count(pmix);
        } else {
            client->lost = true;
            dt_pmix_again_recount(pmix);
        }
        break;
    }
}

static void run_client(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct client_call *self = (struct client_call *)call;
    size_t rank;
    if (dt_pmix_job_local(&pmix->job, &self->proc, &rank))
        hear(pmix, rank, self->news);
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

static void deregistered(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
}

void dt_pmix_lost(const pmix_proc_t *proc)
{
    /* at once: a fence that names the rank and begins before this is done
     * would wait for it */
    PMIx_server_deregister_client(proc, deregistered, NULL);
    post(LOST, proc, NULL, NULL);
}

/* --- the end ------------------------------------------------------------- */

static void tell(struct dt_pmix *pmix, size_t rank, enum dt_mesh_end how,
                 int code)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    const struct dt_mesh_rank *before = dt_mesh_rank(pmix->mesh, rank);
    /* a rank that never was there has nothing to finalize */
    const struct dt_mesh_rank state = {.incarnation = before->incarnation,
                                       .ended = true,
                                       .finalized = client->finalized ||
                                                    !client->connected,
                                       .how = how,
                                       .code = code};
    if (client->told)
        return;
    client->told = true;
    client->due = dt_pmix_now() + LOSS_MS;
    client->known = before->ended;
    client->again = DT_AGAIN_NONE;
    dt_mesh_rank_ended(pmix->mesh, rank, &state);
}

static void end(struct dt_pmix *pmix, size_t rank, enum dt_mesh_end how,
                int code)
{
    /* what it said before it ended comes first */
    dt_pmix_queue_run(&pmix->queue, pmix);
    tell(pmix, rank, how, code);
    dt_pmix_clients_settle(pmix);
}

void dt_pmix_ended(struct dt_pmix *pmix, size_t rank, int code)
{
    end(pmix, rank, DT_END_EXIT, code);
}

void dt_pmix_stopped(struct dt_pmix *pmix, size_t rank)
{
    end(pmix, rank, DT_END_STOPPED, 0);
}

/* PMIx will not hear of this rank by itself any more. */
static bool silent(const struct dt_pmix_client *client)
{
    return !client->connected || client->finalized || client->lost;
}

/* May a rank of this node wait for others? */
static bool any_waits(const struct dt_pmix *pmix)
{
    const struct dt_map_entry *local = pmix->job.local;
    bool any = false;
    for (size_t i = 0; i < local->nranks; i++) {
        const struct dt_pmix_client *client = &pmix->clients[local->ranks[i]];
        any |= client->connected && !client->finalized && !client->lost &&
               !client->told;
    }
    return any;
}

/* Have PMIx neither expect the rank nor count it. */
static void take_out(struct dt_pmix *pmix, size_t rank)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    PMIx_server_deregister_client(&proc, deregistered, NULL);
    pmix->clients[rank].lost = true;
    pmix->clients[rank].connections = 0;
    dt_pmix_again_count(pmix);
}

static void settle(struct dt_pmix *pmix, size_t rank)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    client->settled = true;
    client->due = dt_pmix_now() + STAND_IN_MS;
    /* of one that has finalized PMIx sees the end, but goes on to count it */
    if (!client->lost && (client->finalized || !any_waits(pmix) ||
                          !dt_pmix_standin_start(pmix, rank)))
        take_out(pmix, rank);
    if (client->known)
        return;
    dt_pmix_modex_forget(pmix, rank);
    dt_pmix_news_end(pmix, rank);
}

/* Is the stand-in's work done, or will it never be? */
static void relieve(struct dt_pmix *pmix, size_t rank, int64_t now)
{
    const struct dt_pmix_client *client = &pmix->clients[rank];
    if (!client->stand_in || (!client->lost && now < client->due))
        return;
    dt_pmix_standin_end(pmix, rank);
    if (!client->lost)
        take_out(pmix, rank);
}

void dt_pmix_clients_settle(struct dt_pmix *pmix)
{
    const struct dt_map_entry *local = pmix->job.local;
    int64_t now = dt_pmix_now();
    for (size_t i = 0; i < local->nranks; i++) {
        size_t rank = local->ranks[i];
        const struct dt_pmix_client *client = &pmix->clients[rank];
        if (client->lost && !client->finalized && !client->told &&
            now >= client->due)
            tell(pmix, rank, DT_END_LOST, 0);
        if (client->told && !client->settled &&
            (silent(client) || now >= client->due))
            settle(pmix, rank);
        relieve(pmix, rank, now);
    }
}

int64_t dt_pmix_clients_due(const struct dt_pmix *pmix)
{
    const struct dt_map_entry *local = pmix->job.local;
    int64_t due = DT_NEVER;
    for (size_t i = 0; i < local->nranks; i++) {
        const struct dt_pmix_client *client = &pmix->clients[local->ranks[i]];
        bool waits = client->told ? !client->settled || client->stand_in
                                  : client->lost && !client->finalized;
        if (waits && client->due < due)
            due = client->due;
    }
    return due;
}

void dt_pmix_clients_close(struct dt_pmix *pmix)
{
    const struct dt_map_entry *local = pmix->job.local;
    for (size_t i = 0; i < local->nranks; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, pmix->job.nspace, local->ranks[i]);
        dt_pmix_standin_end(pmix, local->ranks[i]);
        PMIx_server_deregister_client(&proc, deregistered, NULL);
    }
}

size_t dt_pmix_clients_count(const struct dt_pmix *pmix)
{
    const struct dt_map_entry *local = pmix->job.local;
    size_t count = 0;
    for (size_t i = 0; i < local->nranks; i++)
        count += !pmix->clients[local->ranks[i]].lost;
    return count;
}

bool dt_pmix_any_dead(const struct dt_pmix *pmix, const uint32_t *ranks,
                      size_t nranks)
{
    for (size_t i = 0; i < nranks; i++) {
        const struct dt_pmix_client *client = &pmix->clients[ranks[i]];
        if (dt_mesh_rank(pmix->mesh, ranks[i])->ended ||
            (client->lost && !client->finalized))
            return true;
    }
    return false;
}
