/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exchange.h - one collective operation of ranks, of which the part of this
 * node is complete: fence, connect, disconnect, group. Here the parts of all
 * nodes come together. */
#ifndef DT_PMIX_EXCHANGE_H
#define DT_PMIX_EXCHANGE_H

#include <stdint.h>

#include <stdbool.h>
#include <sys/types.h>

#include "queue.h"

/* "what" of dt_mesh_collect. */
enum dt_pmix_collect {
    DT_COLLECT_FENCE = 1,
    DT_COLLECT_CONNECT,
    DT_COLLECT_DISCONNECT,
    DT_COLLECT_CONSTRUCT, /* a group, of that name */
    DT_COLLECT_DESTRUCT,
};

struct dt_pmix_exchange {
    struct dt_pmix_call call; /* must be the first */
    enum dt_pmix_collect what;
    /* of PMIx, valid until done has answered it */
    const char *name; /* NULL: none */
    const pmix_proc_t *procs;
    size_t nprocs;
    const pmix_info_t *info;
    size_t ninfo;
    char *data; /* from malloc: what this node contributes; may be NULL */
    size_t len;
    /* In our thread, may be NULL: the last moment to write data. */
    pmix_status_t (*prepare)(struct dt_pmix *pmix,
                             struct dt_pmix_exchange *exchange);
    /* In our thread: answer PMIx and free the exchange, but not its data. On
     * success data is what all nodes contributed, one after the other, to be
     * freed; else NULL. */
    void (*done)(struct dt_pmix *pmix, struct dt_pmix_exchange *exchange,
                 pmix_status_t status);
    unsigned rounds; /* ours, from here on */
    bool heard;
    pid_t thread; /* PMIx's */
    struct dt_pmix *pmix;
    struct dt_pmix_exchange *next, **link;
};

/* In PMIx's thread; exchange is one malloc'd block or NULL. Frees it and its
 * data if it does not return PMIX_SUCCESS. */
pmix_status_t dt_pmix_exchange_start(struct dt_pmix_exchange *exchange);

/* Free those that wait for other nodes, when nothing can answer any more. */
void dt_pmix_exchanges_free(struct dt_pmix_exchange *all);

#endif
