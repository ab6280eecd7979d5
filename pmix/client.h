/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client.h - the life of one rank of this node, as PMIx's server sees it:
 *
 *   started -> connected -> finalized -> ended     and it may end at any time
 *
 * Two sources tell of an end: the launcher, whose word is exact, and PMIx,
 * which sees the connection break. Either way all nodes are told, and when
 * they are (news.h), the ranks are. A rank that ended without PMIx_Finalize is
 * taken out of PMIx's books, so that nothing waits for it any more; but only
 * once PMIx has seen the break, or fences that wait for the rank would never
 * learn of it: where there is none to be seen, one is made, standin.h. After
 * that it may come back, see again.h. */
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

/* How far a rank that may come back is, again.h. */
enum dt_pmix_again {
    DT_AGAIN_NONE,
    DT_AGAIN_FORGET, /* PMIx forgets the old one */
    DT_AGAIN_EXPECT, /* PMIx is told to count and to expect the new one */
    DT_AGAIN_READY,  /* it may start */
    DT_AGAIN_FAILED,
};

struct dt_pmix_client {
    bool connected, finalized;
    /* that PMIx has of it: more than one with a stand-in, and left over while
     * a child of it keeps one open */
    size_t connections;
    bool lost;      /* its connection broke: PMIx does not count it any more */
    bool told;      /* all nodes have been told of its end */
    bool known;     /* as they had been before: it did not come back */
    bool settled;   /* and the ranks of this one */
    pid_t stand_in; /* settled, but PMIx is still to see it; 0: none */
    int64_t due;    /* when not to wait any longer: once lost for the
                     * launcher's word, once told for PMIx to see the break,
                     * once settled for the stand-in */
    enum dt_pmix_again again;
    pmix_status_t refusal; /* of PMIx, once FAILED */
};

/* For PMIx's module. */
pmix_status_t dt_pmix_connected(const pmix_proc_t *proc, void *object,
                                pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_finalized(const pmix_proc_t *proc, void *object,
                                pmix_op_cbfunc_t cbfunc, void *cbdata);

/* For PMIx's event of a broken connection: any thread. */
void dt_pmix_lost(const pmix_proc_t *proc);

/* Tell of ranks that ended and whose time has come. */
void dt_pmix_clients_settle(struct dt_pmix *pmix);

/* When the next is due, of the clock of dt_pmix_now, or DT_NEVER. */
int64_t dt_pmix_clients_due(const struct dt_pmix *pmix);

/* Have PMIx do what it does at the end of each rank. */
void dt_pmix_clients_close(struct dt_pmix *pmix);

/* How many ranks of this node PMIx counts: all but the lost. */
size_t dt_pmix_clients_count(const struct dt_pmix *pmix);

/* Has one of these ranks ended, or lost its connection before it was
 * finalized? */
bool dt_pmix_any_dead(const struct dt_pmix *pmix, const uint32_t *ranks,
                      size_t nranks);

#endif
