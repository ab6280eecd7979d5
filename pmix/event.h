/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* event.h - news for the ranks, and news from them. */
#ifndef DT_PMIX_EVENT_H
#define DT_PMIX_EVENT_H

#include <pmix_common.h>
#include <pmix_server.h>

/* Tell the ranks that registered for code that the one at proc has ended.
 * PMIX_EVENT_PROC_TERMINATED, a normal end, is told only to those who asked
 * for it by name. */
void dt_pmix_notify_end(const pmix_proc_t *proc, pmix_status_t code,
                        int exit_code);

/* Hear of broken connections from PMIx until dt_pmix_events_close. */
pmix_status_t dt_pmix_events_open(size_t *handler);
void dt_pmix_events_close(size_t handler);

/* For PMIx's module. */
pmix_status_t dt_pmix_register_events(pmix_status_t *codes, size_t ncodes,
                                      const pmix_info_t info[], size_t ninfo,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_deregister_events(pmix_status_t *codes, size_t ncodes,
                                        pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t dt_pmix_notify_event(pmix_status_t code,
                                   const pmix_proc_t *source,
                                   pmix_data_range_t range, pmix_info_t info[],
                                   size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                   void *cbdata);

#endif
