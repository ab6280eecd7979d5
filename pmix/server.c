/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server.c - opening, turning and closing the PMIx server. */
#include "server.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "core.h"
#include "event.h"
#include "exchange.h"
#include "fence.h"
#include "group.h"
#include "info.h"
#include "modex.h"
#include "news.h"
#include "query.h"

/* --- settings ------------------------------------------------------------ */

/* The only address that PMIx asks munge at. */
#define MUNGE_SOCKET "/run/munge/munge.socket.2"

static bool munge_answers(void)
{
    struct sockaddr_un addr = {AF_UNIX, MUNGE_SOCKET};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool answers = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
    close(fd);
    return answers;
}

/* auth: as in dt_pmix_config. */
static dt_result_t choose_auth(const char *auth, const char **psec,
                               struct dt_error *err)
{
    bool wanted = auth && strcmp(auth, "munge") == 0;
    if (auth && !wanted && strcmp(auth, "native") != 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "authentication by %s: expected munge or native",
                            auth);
    bool answers = (wanted || !auth) && munge_answers();
    if (wanted && !answers)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "munge does not answer at " MUNGE_SOCKET
                            ": is munged running on this node?");
    *psec = answers ? "munge" : "native";
    return DT_SUCCESS;
}

static dt_result_t set_defaults(const char *auth, struct dt_error *err)
{
    const char *psec = NULL;
    dt_result_t rc = choose_auth(auth, &psec, err);
    if (rc != DT_SUCCESS)
        return rc;
    const struct {
        const char *name, *value;
        int overwrite;
    } all[] = {
        /* the other stores of PMIx 4.2 fail when a rank is replaced */
        {"PMIX_MCA_gds", "hash", 0},
        /* or the loss of a rank is told a second late */
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
        .client_connected2 = dt_pmix_connected,
        .client_finalized = dt_pmix_finalized,
        .abort = dt_pmix_abort,
        .fence_nb = dt_pmix_fence,
        .direct_modex = dt_pmix_modex,
        .publish = dt_pmix_publish,
        .lookup = dt_pmix_lookup,
        .unpublish = dt_pmix_unpublish,
        .spawn = no_spawn,
        .connect = dt_pmix_connect,
        .disconnect = dt_pmix_disconnect,
        .register_events = dt_pmix_register_events,
        .deregister_events = dt_pmix_deregister_events,
        .notify_event = dt_pmix_notify_event,
        .query = dt_pmix_query,
        .job_control = dt_pmix_job_control,
        .group = dt_pmix_group,
    };
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

static dt_result_t serve(struct dt_pmix *self, struct dt_error *err)
{
    pmix_status_t rc = dt_pmix_events_open(&self->loss_handler);
    if (rc != PMIX_SUCCESS)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "PMIx does not tell of lost ranks: %s",
                            PMIx_Error_string(rc));
    return dt_pmix_job_register(&self->job, err);
}

static dt_result_t prepare(struct dt_pmix *self,
                           const struct dt_pmix_config *config,
                           struct dt_error *err)
{
    self->launcher = config->launcher;
    self->stand_in = config->stand_in;
    self->watchdog.seen_at = dt_pmix_now();
    dt_result_t rc = dt_pmix_job_init(&self->job, config, err);
    if (rc != DT_SUCCESS)
        return rc;
    self->clients = calloc(self->job.size, sizeof(*self->clients));
    if (!self->clients)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ranks",
                            self->job.size);
    return set_defaults(config->auth, err);
}

/* The mesh sends to others as soon as it is there, so it comes last. */
static dt_result_t start(struct dt_pmix *self, struct dt_error *err)
{
    const struct dt_mesh_host host = dt_pmix_news_host(self);
    dt_result_t rc = start_library(&self->job, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = serve(self, err);
    if (rc == DT_SUCCESS)
        rc = dt_mesh_create(&self->mesh, self->job.map, self->job.self, &host,
                            dt_pmix_now(), err);
    if (rc != DT_SUCCESS)
        PMIx_server_finalize();
    return rc;
}

/* What is left when PMIx's library has ended. */
static void free_all(struct dt_pmix *self)
{
    dt_mesh_destroy(self->mesh);
    dt_pmix_exchanges_free(self->exchanges);
    dt_pmix_modex_free(&self->modexes);
    dt_pmix_store_free(&self->store);
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
    rc = start(self, err);
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
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    pmix_status_t rc = PMIx_server_setup_fork(&proc, env);
    if (rc != PMIX_SUCCESS)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "PMIx does not prepare rank %zu: %s", rank,
                            PMIx_Error_string(rc));
    return DT_SUCCESS;
}

/* --- turning ------------------------------------------------------------- */

int dt_pmix_fd(const struct dt_pmix *pmix)
{
    return pmix->queue.fd;
}

int dt_pmix_sleep(const struct dt_pmix *pmix)
{
    const int64_t dues[] = {dt_pmix_watch_due(&pmix->watchdog),
                            dt_pmix_clients_due(pmix),
                            dt_pmix_store_due(&pmix->store), pmix->mesh_due};
    int64_t due = DT_NEVER;
    for (size_t i = 0; i < sizeof(dues) / sizeof(*dues); i++)
        if (dues[i] < due)
            due = dues[i];
    int64_t left = due - dt_pmix_now();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

dt_result_t dt_pmix_dispatch(struct dt_pmix *pmix, struct dt_error *err)
{
    dt_pmix_queue_run(&pmix->queue, pmix);
    dt_pmix_clients_settle(pmix);
    dt_pmix_store_expire(pmix);
    pmix->mesh_due = dt_mesh_turn(pmix->mesh, dt_pmix_now());
    return dt_pmix_watch(pmix, err);
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
    /* a library that is stuck would hold us here for ever, and still has our
     * memory in its hands */
    if (pmix->watchdog.unheard > 0)
        return;
    dt_pmix_queue_run(&pmix->queue, pmix);
    dt_pmix_events_close(pmix->loss_handler);
    dt_pmix_clients_close(pmix);
    PMIx_server_deregister_nspace(pmix->job.nspace, NULL, NULL);
    /* PMIx_server_finalize of PMIx 4.2 may crash once a fence has run into its
     * time-out: so PMIx's thread goes on, and what it looks at stays */
}
