/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* query.h - PMIx_Query_info. */
#ifndef DT_PMIX_QUERY_H
#define DT_PMIX_QUERY_H

#include <pmix_common.h>
#include <pmix_server.h>

/* For PMIx's module. Answers, of this job only,
 *
 *   PMIX_QUERY_NAMESPACES        its name
 *   PMIX_QUERY_JOB_STATUS        PMIX_SUCCESS: it runs
 *   PMIX_QUERY_PROC_TABLE        an array of pmix_proc_info_t: each rank, its
 *   PMIX_QUERY_LOCAL_PROC_TABLE  host, program, exit code, and state; pid 0.
 *                                LOCAL: those of this node
 *   PMIX_QUERY_SPAWN_SUPPORT     "": there is none
 *   PMIX_REINCARNATION           uint32_t: how many lives a rank had before
 * this; with PMIX_RANK, which rank
 *
 * Ask with PMIX_QUERY_REFRESH_CACHE, or PMIx may answer what it heard before.
 *
 * PMIX_QUERY_PARTIAL_SUCCESS or PMIX_ERR_NOT_SUPPORTED where something else
 * was asked for, too; PMIX_ERR_NOT_FOUND: of another job. */
pmix_status_t dt_pmix_query(pmix_proc_t *proc, pmix_query_t *queries,
                            size_t nqueries, pmix_info_cbfunc_t cbfunc,
                            void *cbdata);

#endif
