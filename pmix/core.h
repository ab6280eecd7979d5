/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* core.h - what the parts of the server share. All of it belongs to the thread
 * that calls dt_pmix_dispatch; PMIx's thread touches only the queue. */
#ifndef DT_PMIX_CORE_H
#define DT_PMIX_CORE_H

#include <pmix.h>
#include <pmix_server.h>

#include "client.h"
#include "clock.h"
#include "job.h"
#include "publish.h"
#include "queue.h"
#include "server.h"
#include "watchdog.h"

struct dt_pmix {
    struct dt_pmix_launcher launcher;
    struct dt_pmix_queue queue;
    struct dt_pmix_job job;
    struct dt_pmix_client *clients; /* job.size of them */
    struct dt_pmix_store store;
    struct dt_pmix_watchdog watchdog;
    size_t contexts;     /* groups that were given an id */
    size_t loss_handler; /* of PMIx's event "connection lost" */
};

#endif
