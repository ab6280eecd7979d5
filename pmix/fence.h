/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fence.h - PMIx_Fence, with and without data. */
#ifndef DT_PMIX_FENCE_H
#define DT_PMIX_FENCE_H

#include <pmix_common.h>
#include <pmix_server.h>

/* For PMIx's module. A fence of living ranks of one node never gets here:
 * PMIx completes it alone. */
pmix_status_t dt_pmix_fence(const pmix_proc_t procs[], size_t nprocs,
                            const pmix_info_t info[], size_t ninfo, char *data,
                            size_t len, pmix_modex_cbfunc_t cbfunc,
                            void *cbdata);

#endif
