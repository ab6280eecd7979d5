/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* abort.h - PMIx_Abort. */
#ifndef DT_PMIX_ABORT_H
#define DT_PMIX_ABORT_H

#include <pmix_common.h>
#include <pmix_server.h>
#include <stddef.h>

struct dt_pmix;

/* For PMIx's module. The launchers of all nodes are told. */
pmix_status_t dt_pmix_abort(const pmix_proc_t *proc, void *object, int status,
                            const char msg[], pmix_proc_t procs[],
                            size_t nprocs, pmix_op_cbfunc_t cbfunc,
                            void *cbdata);

/* DT_TELL_ABORT came from a node, maybe this one. */
void dt_pmix_abort_told(struct dt_pmix *pmix, const void *data, size_t len);

#endif
