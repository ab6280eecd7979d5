/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* event.h - news for the ranks, and news from them.
 *
 * PMIx keeps old events and gives them to who registers later: a replacement
 * hears of the end of its own predecessor. So news of a rank's life say which:
 * PMIX_EVENT_AFFECTED_PROC is the rank, PMIX_REINCARNATION (uint32_t) counts
 * its lives from 0. */
#ifndef DT_PMIX_EVENT_H
#define DT_PMIX_EVENT_H

#include <pmix_common.h>
#include <pmix_server.h>

struct dt_pmix;

/* A rank that had ended is back, PMIX_REINCARNATION lives later. PMIx knows no
 * such event; these codes are its users' own. Told to those who ask for it. */
#define DT_EVENT_PROC_JOINED (PMIX_EXTERNAL_ERR_BASE - 1)

/* Tell the ranks of this node that registered for code that this life of the
 * one at proc has ended. PMIX_EVENT_PROC_TERMINATED, a normal end, is told only
 * to those who asked for it by name. */
void dt_pmix_notify_end(const pmix_proc_t *proc, pmix_status_t code,
                        int exit_code, uint32_t incarnation);

/* The same of DT_EVENT_PROC_JOINED. */
void dt_pmix_notify_joined(const pmix_proc_t *proc, uint32_t incarnation);

/* Hear from PMIx of broken connections, and of heartbeats and files that its
 * monitors miss, until dt_pmix_events_close. */
pmix_status_t dt_pmix_events_open(size_t *handler);
void dt_pmix_events_close(size_t handler);

/* DT_TELL_EVENT came from a node, maybe this one: an event for ranks of all
 * nodes. data is what follows the byte that says so:
 *
 *   code u32 | source proc | range u8 | infos of pack.h */
void dt_pmix_event_told(struct dt_pmix *pmix, size_t from_node,
                        const void *data, size_t len);

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
