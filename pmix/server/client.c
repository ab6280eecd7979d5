/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.c - the ranks of this node, as PMIx's server sees them. */
#include "server/client.h"

#include <stdlib.h>

#include "operations/operations.h"
#include "server/library.h"
#include "server/proxy_client.h"
#include "server/server_state.h"

/* PMIx sees a connection break within a millisecond, unless a child of the rank
 * keeps it open. */
#define BREAK_MS 1000
/* When a rank dies its connection breaks; the launcher reports its exit code
 * soon after. */
#define LAUNCHER_MS 50
#define PROXY_MS    5000

enum event { CONNECTED, FINALIZED, LOST };

struct client_call {
    struct dt_pmix_call call;
    enum event event;
    pmix_proc_t proc;
};

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

/* A loss that PMIx saw before it got our count is reported to us only when PMIx
 * has returned to its event loop. */
static void run_count(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct count_call *self = (struct count_call *)call;
    if (++self->rounds < DT_LIBRARY_ROUNDS) {
        dt_pmix_in_library(counted, self);
        return;
    }
    pmix->counting--;
    free(self);
}

void dt_pmix_clients_count(struct dt_pmix *pmix)
{
    const struct dt_map_entry *local = pmix->job.local;
    const bool yes = true;
    int count = 0;
    for (size_t i = 0; i < local->nranks; i++)
        count += !pmix->clients[local->ranks[i]].lost;
    struct count_call *self = malloc(sizeof(*self));
    if (!self)
        return; /* a rank may wait for the replacement for ever */
    *self = (struct count_call){.call = {NULL, run_count}};
    pmix->counting++;
    PMIX_INFO_LOAD(&self->info, PMIX_REGISTER_NODATA, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_server_register_nspace(
        pmix->job.nspace, count, &self->info, 1, counted, self);
    if (rc != PMIX_SUCCESS)
        counted(rc, self);
}

/* --- what PMIx reports --------------------------------------------------- */

static void on_lost(struct dt_pmix *pmix, struct dt_pmix_client *client)
{
    bool before = client->lost;
    client->connections -= client->connections > 0;
    client->lost = true;
    if (!client->reported)
        client->due = dt_pmix_now() + LAUNCHER_MS;
    /* Of a rank that had two connections PMIx has counted two losses; and a
     * count of ours that is under way is wrong now. */
    if (before || pmix->counting)
        dt_pmix_clients_count(pmix);
}

static void on_event(struct dt_pmix *pmix, size_t rank, enum event event)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    switch (event) {
    case CONNECTED:
        client->connections++;
        if (client->proxy_client)
            break;
        client->connected = true;
        client->finalized = false;
        if (client->replacement != DT_REPLACE_READY)
            break;
        client->replacement = DT_REPLACE_NONE;
        dt_mesh_rank_joined(pmix->mesh, rank);
        break;
    case FINALIZED:
        client->finalized = true;
        client->connections -= client->connections > 0;
        break;
    case LOST:
        on_lost(pmix, client);
        break;
    }
}

static void run_client(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct client_call *self = (struct client_call *)call;
    size_t rank;
    if (dt_pmix_job_local(&pmix->job, &self->proc, &rank))
        on_event(pmix, rank, self->event);
    free(self);
}

static pmix_status_t post(enum event event, const pmix_proc_t *proc)
{
    struct client_call *self = malloc(sizeof(*self));
    if (self)
        *self = (struct client_call){{NULL, run_client}, event, *proc};
    return dt_pmix_post(self ? &self->call : NULL);
}

/* For the module. PMIx goes on when it returns. */
static pmix_status_t posted(enum event event, const pmix_proc_t *proc)
{
    pmix_status_t rc = post(event, proc);
    return rc == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : rc;
}

pmix_status_t dt_pmix_client_connected(const pmix_proc_t *proc, void *object,
                                       pmix_info_t info[], size_t ninfo,
                                       pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object, (void)info, (void)ninfo, (void)cbfunc, (void)cbdata;
    /* PMIx 4.2 gives no callback to answer with, 5.0 takes both ways */
    return posted(CONNECTED, proc);
}

pmix_status_t dt_pmix_client_finalized(const pmix_proc_t *proc, void *object,
                                       pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object, (void)cbfunc, (void)cbdata;
    /* A callback, in our thread, would answer the rank and only then have PMIx
     * know that it has finalized; a rank that is quicker would seem lost. */
    return posted(FINALIZED, proc);
}

static void deregistered(pmix_status_t status, void *cbdata)
{
    (void)status, (void)cbdata;
}

void dt_pmix_client_lost(const pmix_proc_t *proc)
{
    dt_pmix_modex_keep(proc);
    /* at once: a fence that names the rank and begins before would wait for
     * it */
    PMIx_server_deregister_client(proc, deregistered, NULL);
    post(LOST, proc);
}

/* --- the end ------------------------------------------------------------- */

void dt_pmix_client_ended(struct dt_pmix *pmix, size_t rank,
                          enum dt_mesh_end how, int code)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    const struct dt_mesh_rank *before = dt_mesh_rank(pmix->mesh, rank);
    /* a rank that never connected has nothing to finalize */
    const struct dt_mesh_rank state = {.incarnation = before->incarnation,
                                       .ended = true,
                                       .finalized = client->finalized ||
                                                    !client->connected,
                                       .how = how,
                                       .code = code};
    if (client->reported)
        return;
    client->reported = true;
    client->due = dt_pmix_now() + BREAK_MS;
    client->known = before->ended;
    client->replacement = DT_REPLACE_NONE;
    dt_mesh_rank_ended(pmix->mesh, rank, &state);
}

/* PMIx will see no connection of this rank break any more. */
static bool is_silent(const struct dt_pmix_client *client)
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
        any |= !is_silent(client) && !client->reported;
    }
    return any;
}

/* Have PMIx neither expect the rank nor count it. One that has finalized stays
 * registered, as PMIx gives what it has put to no one else otherwise. */
static void deregister(struct dt_pmix *pmix, size_t rank)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    if (!pmix->clients[rank].finalized) {
        dt_pmix_modex_keep(&proc);
        PMIx_server_deregister_client(&proc, deregistered, NULL);
    }
    pmix->clients[rank].lost = true;
    pmix->clients[rank].connections = 0;
    dt_pmix_clients_count(pmix);
}

static void settle(struct dt_pmix *pmix, size_t rank, int64_t now)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    client->settled = true;
    client->due = now + PROXY_MS;
    if (client->lost)
        return;
    /* PMIx sees the end of one that has finalized, but goes on to count it */
    if (!client->finalized && any_waits(pmix))
        client->proxy_client =
            dt_pmix_proxy_client_start(&pmix->job, pmix->proxy_client, rank);
    if (!client->proxy_client)
        deregister(pmix, rank);
}

static void end_proxy(struct dt_pmix_client *client)
{
    dt_pmix_proxy_client_end(client->proxy_client);
    client->proxy_client = 0;
}

/* Has the proxy client done its work, or will it never? */
static void check_proxy(struct dt_pmix *pmix, size_t rank, int64_t now)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    if (!client->proxy_client || (!client->lost && now < client->due))
        return;
    end_proxy(client);
    if (!client->lost)
        deregister(pmix, rank);
}

bool dt_pmix_clients_settle(struct dt_pmix *pmix, size_t *rank)
{
    const struct dt_map_entry *local = pmix->job.local;
    int64_t now = dt_pmix_now();
    for (size_t i = 0; i < local->nranks; i++) {
        size_t r = local->ranks[i];
        const struct dt_pmix_client *client = &pmix->clients[r];
        if (client->lost && !client->finalized && !client->reported &&
            now >= client->due)
            dt_pmix_client_ended(pmix, r, DT_END_LOST, 0);
        bool settles = client->reported && !client->settled &&
                       (is_silent(client) || now >= client->due);
        if (settles)
            settle(pmix, r, now);
        check_proxy(pmix, r, now);
        if (settles && !client->known) {
            *rank = r;
            return true;
        }
    }
    return false;
}

int64_t dt_pmix_clients_due(const struct dt_pmix *pmix)
{
    const struct dt_map_entry *local = pmix->job.local;
    int64_t due = DT_NEVER;
    for (size_t i = 0; i < local->nranks; i++) {
        const struct dt_pmix_client *client = &pmix->clients[local->ranks[i]];
        bool waits = client->reported ? !client->settled || client->proxy_client
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
        end_proxy(&pmix->clients[local->ranks[i]]);
        PMIx_server_deregister_client(&proc, deregistered, NULL);
    }
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
