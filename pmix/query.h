/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* query.h - PMIx_Query_info. */
#ifndef DT_PMIX_QUERY_H
#define DT_PMIX_QUERY_H

#include <pmix_common.h>
#include <pmix_server.h>

/* For PMIx's module. Answers PMIX_QUERY_NAMESPACES, PMIX_QUERY_JOB_STATUS and
 * PMIX_QUERY_SPAWN_SUPPORT; PMIX_QUERY_PARTIAL_SUCCESS or
 * PMIX_ERR_NOT_SUPPORTED for others. */
pmix_status_t dt_pmix_query(pmix_proc_t *proc, pmix_query_t *queries,
                            size_t nqueries, pmix_info_cbfunc_t cbfunc,
                            void *cbdata);

#endif
