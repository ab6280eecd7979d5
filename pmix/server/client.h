/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.h - the ranks of this node, as PMIx's server sees them:
 *
 *   started -> connected -> finalized -> ended     and it may end at any time
 *
 * The end of a rank is reported by the launcher, which knows how it ended, and
 * by PMIx, which sees the connection break. Either way all nodes are notified,
 * and then the server's operations are (dt_pmix_clients_settle). A rank that
 * ended without PMIx_Finalize is deregistered, so that nothing waits for it any
 * more; but only when PMIx has seen the connection break, or fences that wait
 * for the rank would never fail. Where no break would come, a proxy client
 * makes one. After that the rank may be replaced (replacement.c). One that has
 * finalized is only not counted any more: PMIx goes on to serve what it has
 * put, but a later fence that names it, other than by PMIX_RANK_WILDCARD, waits
 * for it. */
#ifndef DT_PMIX_CLIENT_H
#define DT_PMIX_CLIENT_H

#include <pmix_common.h>
#include <pmix_server.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mesh/mesh.h"

struct dt_pmix;

/* The steps of a replacement, in their order. */
enum dt_pmix_replacement {
    DT_REPLACE_NONE,
    DT_REPLACE_DEREGISTER, /* PMIx deregisters the old process */
    DT_REPLACE_REGISTER,   /* PMIx counts and registers the new one */
    DT_REPLACE_READY,      /* it may start */
    DT_REPLACE_FAILED,
};

struct dt_pmix_client {
    bool connected, finalized;
    /* Connections that PMIx has of it: two with a proxy client, and one is left
     * while a child of the rank keeps it open. */
    size_t connections;
    bool lost;     /* a connection broke: PMIx does not count it any more */
    bool reported; /* all nodes have been notified of its end */
    bool known;    /* they had been before: it is a failed replacement */
    bool settled;  /* dt_pmix_clients_settle has dealt with its end */
    pid_t proxy_client; /* settled, but PMIx has to see a break; 0: none */
    int64_t due;        /* ms; until then, once lost: wait for the launcher's
                         * report; once reported: wait for PMIx to see the
                         * break; once settled: wait for the proxy client */
    char *kept; /* what it had put for other nodes, packed by PMIx, or NULL */
    size_t kept_len;
    enum dt_pmix_replacement replacement;
    pmix_status_t refusal; /* of PMIx, once FAILED */
};

/* For PMIx's module. */
pmix_status_t dt_pmix_client_connected(const pmix_proc_t *proc, void *object,
                                       pmix_info_t info[], size_t ninfo,
                                       pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_client_finalized(const pmix_proc_t *proc, void *object,
                                       pmix_op_cbfunc_t cbfunc, void *cbdata);

/* In PMIx's thread: it has seen the rank's connection break. */
void dt_pmix_client_lost(const pmix_proc_t *proc);

/* The launcher or the process monitor reports the end of a rank of this node.
 * Notifies all nodes. */
void dt_pmix_client_ended(struct dt_pmix *pmix, size_t rank,
                          enum dt_mesh_end how, int code);

/* Do what is due about ranks that have ended. True: the end of *rank is now
 * known to all nodes and seen by PMIx. Call it until it returns false. */
bool dt_pmix_clients_settle(struct dt_pmix *pmix, size_t *rank);

/* When that is due, of the clock of dt_pmix_now, or DT_NEVER. */
int64_t dt_pmix_clients_due(const struct dt_pmix *pmix);

/* Deregister all ranks of this node, as PMIx expects it at their end. */
void dt_pmix_clients_close(struct dt_pmix *pmix);

/* Set the number of ranks of this node in PMIx: all but the lost. PMIx never
 * raises this count by itself, and lowers it only for those it has lost. */
void dt_pmix_clients_count(struct dt_pmix *pmix);

/* Has one of these ranks ended, or lost its connection before it was
 * finalized? */
bool dt_pmix_any_dead(const struct dt_pmix *pmix, const uint32_t *ranks,
                      size_t nranks);

#endif
