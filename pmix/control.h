/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* control.h - PMIx_Job_control. */
#ifndef DT_PMIX_CONTROL_H
#define DT_PMIX_CONTROL_H

#include <pmix_common.h>
#include <pmix_server.h>

/* For PMIx's module. To end all ranks (PMIX_JOB_CTRL_TERMINATE or _KILL; no
 * targets, or the wildcard) is PMIx_Abort with 128 + the signal. Anything else,
 * and anything for some ranks only, is NOT_SUPPORTED. What ranks register for
 * clean-up PMIx does itself, but only where there is this callback. */
pmix_status_t dt_pmix_job_control(const pmix_proc_t *requestor,
                                  const pmix_proc_t targets[], size_t ntargets,
                                  const pmix_info_t directives[], size_t ndirs,
                                  pmix_info_cbfunc_t cbfunc, void *cbdata);

#endif
