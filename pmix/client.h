/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.h - the life of one rank, as PMIx's server sees it:
 *
 *   started -> connected -> finalized -> ended     and it may end at any time
 *
 * Two sources tell of an end: the launcher, whose word is exact, and PMIx,
 * which sees the connection break. A rank that ended without PMIx_Finalize is
 * taken out of PMIx's books, so that nothing waits for it any more; but only
 * once PMIx has seen the break, or fences that wait for the rank would never
 * learn of it. */
#ifndef DT_PMIX_CLIENT_H
#define DT_PMIX_CLIENT_H

#include <pmix_common.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_pmix;

struct dt_pmix_client {
    bool connected, finalized;
    bool lost;    /* its connection broke */
    bool ended;   /* its process did */
    bool settled; /* the others have been told */
    int code;     /* once ended */
    int64_t due;  /* once ended: when to wait for lost no longer */
};

/* For PMIx's module. */
pmix_status_t dt_pmix_connected(const pmix_proc_t *proc, void *object,
                                pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_finalized(const pmix_proc_t *proc, void *object,
                                pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_abort(const pmix_proc_t *proc, void *object, int status,
                            const char msg[], pmix_proc_t procs[],
                            size_t nprocs, pmix_op_cbfunc_t cbfunc,
                            void *cbdata);

/* For PMIx's event of a broken connection: any thread. */
void dt_pmix_lost(const pmix_proc_t *proc);

/* Tell the others of ranks that ended and whose time has come. */
void dt_pmix_clients_settle(struct dt_pmix *pmix);

/* When the next is due, of the clock of dt_pmix_now, or DT_NEVER. */
int64_t dt_pmix_clients_due(const struct dt_pmix *pmix);

/* Has a rank named in procs ended, or lost its connection before it was
 * finalized? PMIX_RANK_WILDCARD names all. */
bool dt_pmix_any_dead(const struct dt_pmix *pmix, const pmix_proc_t *procs,
                      size_t nprocs);

#endif
