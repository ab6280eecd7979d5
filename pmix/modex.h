/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* modex.h - PMIx_Get of what a rank that is not on this node has put. */
#ifndef DT_PMIX_MODEX_H
#define DT_PMIX_MODEX_H

#include <pmix_common.h>
#include <pmix_server.h>

/* For PMIx's module. With one node only the keys of a rank that has ended get
 * here: whatever it never put is not found, at once. */
pmix_status_t dt_pmix_modex(const pmix_proc_t *proc, const pmix_info_t info[],
                            size_t ninfo, pmix_modex_cbfunc_t cbfunc,
                            void *cbdata);

#endif
