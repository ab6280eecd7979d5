/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server_state.h - the state of the server, for its own files and for the
 * operations. It belongs to the thread that calls dt_pmix_dispatch; PMIx's
 * thread uses the queue only. */
#ifndef DT_PMIX_SERVER_STATE_H
#define DT_PMIX_SERVER_STATE_H

#include <pmix.h>
#include <pmix_server.h>

#include "mesh/clock.h"
#include "membership/membership.h"
#include "mesh/mesh.h"
#include "server/config.h"
#include "server/job.h"
#include "server/queue.h"
#include "server/watchdog.h"

struct dt_pmix {
    struct dt_pmix_launcher launcher;
    struct dt_pmix_queue queue;
    struct dt_pmix_job job;
    struct dt_mesh *mesh;
    struct dt_membership *membership;
    int64_t membership_due; /* when dt_membership_progress is due */
    int64_t mesh_due;       /* when dt_mesh_progress is due */
    struct dt_pmix_watchdog watchdog;
    struct dt_pmix_client *clients; /* [job.size], client.h */
    size_t counting;                /* registrations of the count under way */
    char *const *proxy_client;      /* as in dt_pmix_config */

    /* The operations, each by the file that is named. */
    struct dt_pmix_collective *collectives; /* collective.c: with other nodes */
    struct dt_pmix_get *gets;               /* modex.c: our requests */
    struct dt_pmix_modex_answer *answers;   /* modex.c: requests to us */
    struct dt_pmix_question *questions;     /* publish.c: our requests */
    struct dt_pmix_store *store;            /* publish.c: requests to us */
    size_t contexts;                        /* group.c: groups so far */
    size_t event_handler;                   /* event.c: PMIx's number of it */
};

#endif
