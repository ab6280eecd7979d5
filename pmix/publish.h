/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* publish.h - the job's notice board: PMIx_Publish, _Lookup, _Unpublish. */
#ifndef DT_PMIX_PUBLISH_H
#define DT_PMIX_PUBLISH_H

#include <pmix_common.h>
#include <pmix_server.h>
#include <stdint.h>

struct dt_pmix;
struct dt_pmix_item;
struct dt_pmix_lookup;

/* Begin with all zero. */
struct dt_pmix_store {
    struct dt_pmix_item *items;     /* newest first */
    struct dt_pmix_lookup *waiting; /* lookups for keys that are not there */
    size_t count;                   /* of items */
};

/* For PMIx's module. A key is unique in its range; LOCAL, NAMESPACE, SESSION
 * and GLOBAL are visible to all ranks of the job, PROC_LOCAL to the publisher.
 * A lookup that names no range searches all of them. */
pmix_status_t dt_pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[],
                              size_t ninfo, pmix_op_cbfunc_t cbfunc,
                              void *cbdata);
pmix_status_t dt_pmix_lookup(const pmix_proc_t *proc, char **keys,
                             const pmix_info_t info[], size_t ninfo,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_unpublish(const pmix_proc_t *proc, char **keys,
                                const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Fail the lookups whose PMIX_TIMEOUT is over. */
void dt_pmix_store_expire(struct dt_pmix *pmix);

/* When the next one is, of the clock of dt_pmix_now, or DT_NEVER. */
int64_t dt_pmix_store_due(const struct dt_pmix_store *store);

/* The rank has ended: remove what it published for its life only, and the
 * lookups that it waits for. */
void dt_pmix_store_forget(struct dt_pmix_store *store, size_t rank);

void dt_pmix_store_free(struct dt_pmix_store *store);

#endif
