/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* abort.h - PMIx_Abort. */
#ifndef DT_PMIX_ABORT_H
#define DT_PMIX_ABORT_H

#include <pmix_common.h>
#include <pmix_server.h>
#include <stddef.h>

/* In PMIx's thread, as in its module: have the launchers of all nodes end the
 * job, whatever ranks procs names. */
pmix_status_t dt_pmix_abort(const pmix_proc_t *proc, void *object, int status,
                            const char msg[], pmix_proc_t procs[],
                            size_t nprocs, pmix_op_cbfunc_t cbfunc,
                            void *cbdata);

#endif
