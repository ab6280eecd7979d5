/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* publish.h - PMIx_Publish, _Lookup and _Unpublish: questions to the server
 * that keeps the notice board, store.h. */
#ifndef DT_PMIX_PUBLISH_H
#define DT_PMIX_PUBLISH_H

#include <pmix_common.h>
#include <pmix_server.h>

#include "store.h"

/* For PMIx's module. A lookup that names no range searches all of them, and
 * one that names no PMIX_WAIT returns at once. COMM_FAILURE: the node that
 * keeps the board was lost meanwhile, and what was published with it.
 * NOT_SUPPORTED: the range, or the type of a value that holds a pointer. */
pmix_status_t dt_pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[],
                              size_t ninfo, pmix_op_cbfunc_t cbfunc,
                              void *cbdata);
pmix_status_t dt_pmix_lookup(const pmix_proc_t *proc, char **keys,
                             const pmix_info_t info[], size_t ninfo,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_unpublish(const pmix_proc_t *proc, char **keys,
                                const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata);

/* Forget the questions that have no answer yet; the mesh must be gone. */
void dt_pmix_questions_free(struct dt_pmix_store *store);

#endif
