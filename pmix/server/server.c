/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server.c - the PMIx server: opened, polled and closed. */
#include "server/server.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "operations/operations.h"
#include "server/client.h"
#include "server/client_auth.h"
#include "server/info.h"
#include "server/server_state.h"

/* In the order in which they are called at the end of a rank. */
static const struct dt_pmix_operation *const operations[] = {
    &dt_pmix_op_modex,       &dt_pmix_op_publish, &dt_pmix_op_event,
    &dt_pmix_op_abort,       &dt_pmix_op_fence,   &dt_pmix_op_group,
    &dt_pmix_op_job_control, &dt_pmix_op_query,   &dt_pmix_op_meet,
};

enum { OPERATIONS = sizeof(operations) / sizeof(*operations) };

/* --- settings ------------------------------------------------------------ */

bool dt_pmix_has_munge(void)
{
    return dt_client_auth_has_munge();
}

static dt_result_t set_defaults(const char *auth, struct dt_error *err)
{
    const char *psec = NULL;
    dt_result_t rc = dt_client_auth_choose(auth, &psec, err);
    if (rc != DT_SUCCESS)
        return rc;
    const struct {
        const char *name, *value;
        int overwrite;
    } all[] = {
        /* the other stores of PMIx 4.2 fail when a rank is replaced */
        {"PMIX_MCA_gds", "hash", 0},
        /* or the loss of a rank is reported a second late */
        {"PMIX_MCA_pmix_event_caching_window", "0", 0},
        {"PMIX_MCA_psec", psec, auth != NULL},
        {"PMIX_MCA_ptl_base_if_include", "lo", 0},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (setenv(all[i].name, all[i].value, all[i].overwrite))
            return dt_error_set(err, DT_ERR_NO_MEMORY, "setenv: %s",
                                strerror(errno));
    return DT_SUCCESS;
}

/* --- the host of the mesh ------------------------------------------------ */

static void send_frame(void *arg, size_t node, struct dt_frame *frame)
{
    const struct dt_pmix *pmix = arg;
    pmix->launcher.send(pmix->launcher.arg, node, frame);
}

static void rank_ended(struct dt_pmix *pmix, size_t rank,
                       const struct dt_mesh_rank *state)
{
    for (size_t i = 0; i < OPERATIONS; i++)
        if (operations[i]->rank_ended)
            operations[i]->rank_ended(pmix, rank, state);
}

static void on_ended(void *arg, size_t rank, const struct dt_mesh_rank *state)
{
    struct dt_pmix *pmix = arg;
    pmix->membership_due = 0;
    dt_membership_rank(pmix->membership, rank);
    /* for a rank of this node PMIx has to see it first: settle_clients */
    if (pmix->job.map->node_of[rank] != pmix->job.self)
        rank_ended(pmix, rank, state);
    if (pmix->launcher.ended && state->how == DT_END_EXIT)
        pmix->launcher.ended(pmix->launcher.arg, rank, state->code);
}

static void on_joined(void *arg, size_t rank, uint32_t incarnation)
{
    const struct dt_pmix *pmix = arg;
    dt_membership_rank(pmix->membership, rank);
    for (size_t i = 0; i < OPERATIONS; i++)
        if (operations[i]->rank_joined)
            operations[i]->rank_joined(arg, rank, incarnation);
}

static void on_node_lost(void *arg, size_t node, const char *why)
{
    const struct dt_pmix *pmix = arg;
    dt_membership_node_lost(pmix->membership);
    if (pmix->launcher.node_lost)
        pmix->launcher.node_lost(pmix->launcher.arg, node, why);
}

static void on_declared_lost(void *arg, const char *why)
{
    const struct dt_pmix *pmix = arg;
    on_node_lost(arg, pmix->job.self, why);
}

static void on_broadcast(void *arg, size_t from, const void *data, size_t len)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; len > 0 && i < OPERATIONS; i++)
        if (operations[i]->received && operations[i]->kind == bytes[0])
            operations[i]->received(arg, from, bytes + 1, len - 1);
}

static void on_asked(void *arg, size_t from, uint64_t ticket, uint32_t what,
                     const void *data, size_t len)
{
    struct dt_pmix *pmix = arg;
    for (size_t i = 0; i < OPERATIONS; i++)
        if (operations[i]->asked && what >= operations[i]->first &&
            what <= operations[i]->last) {
            operations[i]->asked(pmix, from, ticket, what, data, len);
            return;
        }
    dt_mesh_answer(pmix->mesh, ticket, PMIX_ERR_NOT_SUPPORTED, NULL, 0);
}

/* --- opening ------------------------------------------------------------- */

static pmix_status_t no_spawn(const pmix_proc_t *proc,
                              const pmix_info_t job_info[], size_t ninfo,
                              const pmix_app_t apps[], size_t napps,
                              pmix_spawn_cbfunc_t cbfunc, void *cbdata)
{
    (void)proc, (void)job_info, (void)ninfo, (void)apps, (void)napps;
    (void)cbfunc, (void)cbdata;
    return PMIX_ERR_NOT_SUPPORTED;
}

static dt_result_t start_library(const struct dt_pmix_job *job,
                                 struct dt_error *err)
{
    pmix_server_module_t module = {
        .client_connected2 = dt_pmix_client_connected,
        .client_finalized = dt_pmix_client_finalized,
        .spawn = no_spawn,
    };
    for (size_t i = 0; i < OPERATIONS; i++)
        operations[i]->fill(&module);
    char nspace[PMIX_MAX_NSLEN + 1];
    pmix_rank_t rank = (pmix_rank_t)job->self;
    struct dt_pmix_infos infos = {0};
    snprintf(nspace, sizeof(nspace), "dt-server.%ld", (long)getpid());
    dt_pmix_info_add(&infos, PMIX_SERVER_NSPACE, nspace, PMIX_STRING);
    dt_pmix_info_add(&infos, PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    dt_pmix_info_add(&infos, PMIX_SERVER_TMPDIR, job->directory, PMIX_STRING);
    dt_pmix_info_add(&infos, PMIX_SYSTEM_TMPDIR, job->directory, PMIX_STRING);
    dt_pmix_info_add(&infos, PMIX_HOSTNAME, job->local->name, PMIX_STRING);
    pmix_status_t rc = PMIX_ERR_NOMEM;
    if (!infos.failed)
        rc = PMIx_server_init(&module, infos.all, infos.count);
    dt_pmix_info_free(&infos);
    if (rc != PMIX_SUCCESS)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "no PMIx server can be started here: %s",
                            PMIx_Error_string(rc));
    return DT_SUCCESS;
}

static dt_result_t open_operations(struct dt_pmix *self, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < OPERATIONS && rc == DT_SUCCESS; i++)
        if (operations[i]->open)
            rc = operations[i]->open(self, err);
    return rc;
}

static dt_result_t prepare(struct dt_pmix *self,
                           const struct dt_pmix_config *config,
                           struct dt_error *err)
{
    self->launcher = config->launcher;
    self->proxy_client = config->proxy_client;
    self->watchdog.checked_at = dt_pmix_now();
    dt_result_t rc = dt_pmix_job_init(&self->job, config, err);
    if (rc != DT_SUCCESS)
        return rc;
    self->clients = calloc(self->job.size, sizeof(*self->clients));
    if (!self->clients)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ranks",
                            self->job.size);
    return set_defaults(config->auth, err);
}

static dt_result_t open_mesh(struct dt_pmix *self,
                             const struct dt_pmix_config *config,
                             struct dt_error *err)
{
    const struct dt_mesh_host host = {.arg = self,
                                      .send = send_frame,
                                      .ended = on_ended,
                                      .joined = on_joined,
                                      .broadcast = on_broadcast,
                                      .node_lost = on_node_lost,
                                      .declared_lost = on_declared_lost,
                                      .asked = on_asked};
    const struct dt_membership_config membership = {
        .minimum = config->elastic_min,
        .replaces = config->respawns > 0,
        .what = DT_ASK_MEMBERSHIP,
        .kind = DT_BROADCAST_MEMBERSHIP};
    dt_result_t rc = dt_mesh_create(&self->mesh, self->job.map, self->job.self,
                                    &host, dt_pmix_now(), err);
    if (rc == DT_SUCCESS)
        rc = dt_membership_create(&self->membership, self->mesh, self->job.map,
                                  self->job.self, &membership, err);
    return rc;
}

/* The mesh sends to others as soon as it is there, so it comes last. */
static dt_result_t start(struct dt_pmix *self,
                         const struct dt_pmix_config *config,
                         struct dt_error *err)
{
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    /* PMIx's thread writes to ranks that may be gone */
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    dt_result_t rc = start_library(&self->job, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != DT_SUCCESS)
        return rc;
    rc = open_operations(self, err);
    if (rc == DT_SUCCESS)
        rc = dt_pmix_job_register(&self->job, err);
    if (rc == DT_SUCCESS)
        rc = open_mesh(self, config, err);
    if (rc != DT_SUCCESS)
        PMIx_server_finalize();
    return rc;
}

/* When PMIx's library has ended. */
static void free_all(struct dt_pmix *self)
{
    dt_mesh_destroy(self->mesh);
    dt_membership_destroy(self->membership);
    for (size_t i = 0; i < OPERATIONS; i++)
        if (operations[i]->free)
            operations[i]->free(self);
    for (size_t i = 0; self->clients && i < self->job.size; i++)
        free(self->clients[i].kept);
    free(self->clients);
    dt_pmix_job_free(&self->job);
    free(self);
}

dt_result_t dt_pmix_open(struct dt_pmix **pmix,
                         const struct dt_pmix_config *config,
                         struct dt_error *err)
{
    struct dt_pmix *self = calloc(1, sizeof(*self));
    if (!self)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a server");
    dt_result_t rc = prepare(self, config, err);
    if (rc == DT_SUCCESS)
        rc = dt_pmix_queue_open(&self->queue, err);
    if (rc != DT_SUCCESS)
        goto free_self;
    rc = start(self, config, err);
    if (rc != DT_SUCCESS)
        goto close_queue;
    *pmix = self;
    return DT_SUCCESS;

close_queue:
    dt_pmix_queue_close(&self->queue);
free_self:
    free_all(self);
    return rc;
}

dt_result_t dt_pmix_environ(struct dt_pmix *pmix, size_t rank, char ***env,
                            struct dt_error *err)
{
    return dt_pmix_job_environ(&pmix->job, rank, env, err);
}

/* --- progress ------------------------------------------------------------ */

int dt_pmix_fd(const struct dt_pmix *pmix)
{
    return pmix->queue.fd;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int dt_pmix_sleep(const struct dt_pmix *pmix)
{
    int64_t due =
        earlier(dt_pmix_watchdog_due(&pmix->watchdog),
                earlier(dt_pmix_clients_due(pmix),
                        earlier(pmix->mesh_due, pmix->membership_due)));
    for (size_t i = 0; i < OPERATIONS; i++)
        if (operations[i]->due)
            due = earlier(due, operations[i]->due(pmix));
    int64_t left = due - dt_pmix_now();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static void settle_clients(struct dt_pmix *pmix)
{
    size_t rank;
    while (dt_pmix_clients_settle(pmix, &rank))
        rank_ended(pmix, rank, dt_mesh_rank(pmix->mesh, rank));
}

dt_result_t dt_pmix_dispatch(struct dt_pmix *pmix, struct dt_error *err)
{
    dt_pmix_queue_run(&pmix->queue, pmix);
    settle_clients(pmix);
    for (size_t i = 0; i < OPERATIONS; i++)
        if (operations[i]->expire)
            operations[i]->expire(pmix);
    pmix->mesh_due = dt_mesh_progress(pmix->mesh, dt_pmix_now());
    pmix->membership_due =
        dt_membership_progress(pmix->membership, dt_pmix_now());
    return dt_pmix_watchdog_check(&pmix->watchdog, err);
}

static void end_rank(struct dt_pmix *pmix, size_t rank, enum dt_mesh_end how,
                     int code)
{
    /* what it sent before it ended comes first */
    dt_pmix_queue_run(&pmix->queue, pmix);
    dt_pmix_client_ended(pmix, rank, how, code);
    settle_clients(pmix);
}

bool dt_pmix_all_ended(const struct dt_pmix *pmix)
{
    size_t rank = 0;
    while (rank < pmix->job.map->ranks && dt_mesh_rank(pmix->mesh, rank)->ended)
        rank++;
    return rank == pmix->job.map->ranks;
}

void dt_pmix_ended(struct dt_pmix *pmix, size_t rank, int code)
{
    end_rank(pmix, rank, DT_END_EXIT, code);
}

void dt_pmix_stopped(struct dt_pmix *pmix, size_t rank)
{
    end_rank(pmix, rank, DT_END_STOPPED, 0);
}

void dt_pmix_not_replaced(struct dt_pmix *pmix, size_t rank)
{
    pmix->membership_due = 0;
    dt_membership_gone(pmix->membership, rank);
}

dt_result_t dt_pmix_received(struct dt_pmix *pmix, size_t node,
                             const struct dt_frame *frame, struct dt_error *err)
{
    pmix->mesh_due = 0;
    return dt_mesh_receive(pmix->mesh, node, frame, err);
}

void dt_pmix_gone(struct dt_pmix *pmix, size_t node, bool left, const char *why)
{
    pmix->mesh_due = 0;
    if (left)
        dt_mesh_node_left(pmix->mesh, node);
    else
        dt_mesh_node_lost(pmix->mesh, node, why);
}

void dt_pmix_close(struct dt_pmix *pmix)
{
    if (!pmix)
        return;
    /* a library in a deadlock would block us here for ever, and may still read
     * our memory */
    if (pmix->watchdog.silent > 0)
        return;
    dt_pmix_queue_run(&pmix->queue, pmix);
    for (size_t i = 0; i < OPERATIONS; i++)
        if (operations[i]->close)
            operations[i]->close(pmix);
    dt_pmix_clients_close(pmix);
    PMIx_server_deregister_nspace(pmix->job.nspace, NULL, NULL);
    /* PMIx_server_finalize of PMIx 4.2 may crash once a fence has timed out: so
     * PMIx's thread goes on, and memory that it may read is not freed */
}
