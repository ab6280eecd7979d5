/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* modex.h - PMIx_Get of what a rank that is not on this node has put. */
#ifndef DT_PMIX_MODEX_H
#define DT_PMIX_MODEX_H

#include <pmix_common.h>
#include <pmix_server.h>
#include <stddef.h>
#include <stdint.h>

struct dt_pmix;

/* Begin with all zero. */
struct dt_pmix_modexes {
    struct dt_pmix_get *gets;         /* of our ranks: other nodes are asked */
    struct dt_pmix_modex_answer *due; /* other nodes have asked */
};

/* For PMIx's module. The node of the rank is asked, which waits until the rank
 * has put something. PMIx asks of a rank of this node only while it does not
 * know it any more: it is not found, at once. */
pmix_status_t dt_pmix_modex(const pmix_proc_t *proc, const pmix_info_t info[],
                            size_t ninfo, pmix_modex_cbfunc_t cbfunc,
                            void *cbdata);

/* DT_ASK_MODEX came from a node. */
void dt_pmix_modex_asked(struct dt_pmix *pmix, uint64_t ticket,
                         const void *data, size_t len);

/* The rank, of this node, has ended: nobody waits for what it did not put. */
void dt_pmix_modex_forget(struct dt_pmix *pmix, size_t rank);

/* Free what waits, when PMIx's library has ended. */
void dt_pmix_modex_free(struct dt_pmix_modexes *modexes);

#endif
