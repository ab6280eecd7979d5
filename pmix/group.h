/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* group.h - PMIx_Group_construct and _destruct, PMIx_Connect and _Disconnect:
 * collective operations that exchange no data of their own. */
#ifndef DT_PMIX_GROUP_H
#define DT_PMIX_GROUP_H

#include <pmix_common.h>
#include <pmix_server.h>

/* For PMIx's module. */
pmix_status_t dt_pmix_group(pmix_group_operation_t op, char *name,
                            const pmix_proc_t procs[], size_t nprocs,
                            const pmix_info_t info[], size_t ninfo,
                            pmix_info_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_connect(const pmix_proc_t procs[], size_t nprocs,
                              const pmix_info_t info[], size_t ninfo,
                              pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_disconnect(const pmix_proc_t procs[], size_t nprocs,
                                 const pmix_info_t info[], size_t ninfo,
                                 pmix_op_cbfunc_t cbfunc, void *cbdata);

#endif
