/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exchange.h - one collective operation of ranks, of which the part of this
 * node is complete: fence, connect, disconnect, group. Here the parts of all
 * nodes come together; a job of one node has them already. */
#ifndef DT_PMIX_EXCHANGE_H
#define DT_PMIX_EXCHANGE_H

#include "queue.h"

struct dt_pmix_exchange {
    struct dt_pmix_call call; /* must be the first */
    /* of PMIx, valid until done has answered it */
    const pmix_proc_t *procs;
    size_t nprocs;
    const pmix_info_t *info;
    size_t ninfo;
    char *data; /* from malloc: what this node contributes; may be NULL */
    size_t len;
    /* In our thread: answer PMIx and free the exchange, but not its data. On
     * success data is what all nodes contributed, to be freed; else NULL. */
    void (*done)(struct dt_pmix *pmix, struct dt_pmix_exchange *exchange,
                 pmix_status_t status);
};

/* In PMIx's thread; exchange is one malloc'd block or NULL. Frees it and its
 * data if it does not return PMIX_SUCCESS. */
pmix_status_t dt_pmix_exchange_start(struct dt_pmix_exchange *exchange);

#endif
