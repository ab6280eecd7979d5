/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exchange.c - one collective operation of ranks. */
#include "exchange.h"

#include <stdlib.h>

#include "core.h"
#include "info.h"

/* What PMIx noticed while it collected the ranks of this node. */
static pmix_status_t local_status(const struct dt_pmix_exchange *exchange)
{
    const pmix_value_t *value = dt_pmix_info_find(
        exchange->info, exchange->ninfo, PMIX_LOCAL_COLLECTIVE_STATUS);
    return value && value->type == PMIX_STATUS ? value->data.status
                                               : PMIX_SUCCESS;
}

static void finish(struct dt_pmix *pmix, struct dt_pmix_exchange *exchange,
                   pmix_status_t status)
{
    if (status != PMIX_SUCCESS) {
        free(exchange->data);
        exchange->data = NULL;
        exchange->len = 0;
    }
    exchange->done(pmix, exchange, status);
}

/* Bring the nodes' parts together. With several nodes this is where a part is
 * sent and finish waits for the others. */
static void combine(struct dt_pmix *pmix, struct dt_pmix_exchange *exchange)
{
    finish(pmix, exchange, PMIX_SUCCESS);
}

static void run_exchange(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_exchange *self = (struct dt_pmix_exchange *)call;
    if (local_status(self) != PMIX_SUCCESS ||
        dt_pmix_any_dead(pmix, self->procs, self->nprocs))
        finish(pmix, self, PMIX_ERR_PROC_ABORTED);
    else
        combine(pmix, self);
}

static void post_exchange(pmix_status_t status, void *arg)
{
    struct dt_pmix_exchange *self = arg;
    (void)status;
    char *data = self->data;
    if (dt_pmix_post(&self->call) != PMIX_SUCCESS)
        free(data);
}

pmix_status_t dt_pmix_exchange_start(struct dt_pmix_exchange *exchange)
{
    if (!exchange)
        return PMIX_ERR_NOMEM;
    exchange->call.run = run_exchange;
    /* The loss of a rank may have completed this operation, and PMIx tells of
     * the loss only when it comes back to its event loop. Hear that first. */
    dt_pmix_in_library(post_exchange, exchange);
    return PMIX_SUCCESS;
}
