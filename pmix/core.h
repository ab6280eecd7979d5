/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* core.h - what the parts of the server share. All of it belongs to the thread
 * that calls dt_pmix_dispatch; PMIx's thread touches only the queue. */
#ifndef DT_PMIX_CORE_H
#define DT_PMIX_CORE_H

#include <pmix.h>
#include <pmix_server.h>

#include "abort.h"
#include "client.h"
#include "mesh/clock.h"
#include "job.h"
#include "mesh/mesh.h"
#include "modex.h"
#include "publish.h"
#include "queue.h"
#include "server.h"
#include "watchdog.h"

/* What servers ask each other: "what" of dt_mesh_ask. */
enum dt_pmix_ask {
    DT_ASK_MODEX = 1, /* modex.c */
    DT_ASK_PUBLISH,   /* these, of the root: publish.c */
    DT_ASK_LOOKUP,
    DT_ASK_UNPUBLISH,
};

/* What they tell each other: the first byte of dt_mesh_tell. */
enum dt_pmix_tell {
    DT_TELL_ABORT = 1, /* abort.c */
    DT_TELL_EVENT,     /* event.c */
};

struct dt_pmix {
    struct dt_pmix_launcher launcher;
    char *const *stand_in;
    struct dt_pmix_queue queue;
    struct dt_pmix_job job;
    struct dt_mesh *mesh;
    int64_t mesh_due;               /* when it is to be turned */
    struct dt_pmix_client *clients; /* job.size of them */
    struct dt_pmix_modexes modexes;
    struct dt_pmix_store store;
    struct dt_pmix_watchdog watchdog;
    struct dt_pmix_exchange *exchanges; /* that wait for other nodes */
    size_t counting;     /* how many set PMIx's count now, again.c */
    size_t contexts;     /* groups that ranks of this node were in */
    size_t loss_handler; /* of PMIx's event "connection lost" */
};

#endif
