/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* event.c - news for the ranks, and news from them. */
#include "event.h"

#include <pmix.h>
#include <stdbool.h>
#include <stdlib.h>

#include "client.h"
#include "info.h"

static void notified(pmix_status_t status, void *cbdata)
{
    struct dt_pmix_infos *infos = cbdata;
    (void)status;
    dt_pmix_info_free(infos);
    free(infos);
}

void dt_pmix_notify_end(const pmix_proc_t *proc, pmix_status_t code,
                        int exit_code)
{
    const bool yes = true;
    struct dt_pmix_infos *infos = calloc(1, sizeof(*infos));
    if (!infos)
        return;
    dt_pmix_info_add(infos, PMIX_EVENT_AFFECTED_PROC, proc, PMIX_PROC);
    dt_pmix_info_add(infos, PMIX_EXIT_CODE, &exit_code, PMIX_INT);
    if (code == PMIX_EVENT_PROC_TERMINATED)
        dt_pmix_info_add(infos, PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    pmix_status_t rc =
        PMIx_Notify_event(code, proc, PMIX_RANGE_NAMESPACE, infos->all,
                          infos->count, notified, infos);
    if (rc != PMIX_SUCCESS)
        notified(rc, infos);
}

static void on_loss(size_t handler, pmix_status_t status,
                    const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                    pmix_info_t results[], size_t nresults,
                    pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    (void)handler, (void)status, (void)info, (void)ninfo;
    (void)results, (void)nresults;
    dt_pmix_lost(source);
    if (cbfunc)
        cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

pmix_status_t dt_pmix_events_open(size_t *handler)
{
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    /* without a callback it waits, and returns the handler's number */
    pmix_status_t rc =
        PMIx_Register_event_handler(&code, 1, NULL, 0, on_loss, NULL, NULL);
    if (rc < 0)
        return rc;
    *handler = (size_t)rc;
    return PMIX_SUCCESS;
}

void dt_pmix_events_close(size_t handler)
{
    PMIx_Deregister_event_handler(handler, NULL, NULL);
}

/* PMIx keeps the books of who registered, and has told the ranks of this node
 * before it asks us. There is no other node to tell. */

pmix_status_t dt_pmix_register_events(pmix_status_t *codes, size_t ncodes,
                                      const pmix_info_t info[], size_t ninfo,
                                      pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)codes, (void)ncodes, (void)info, (void)ninfo, (void)cbfunc;
    (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t dt_pmix_deregister_events(pmix_status_t *codes, size_t ncodes,
                                        pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)codes, (void)ncodes, (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t dt_pmix_notify_event(pmix_status_t code,
                                   const pmix_proc_t *source,
                                   pmix_data_range_t range, pmix_info_t info[],
                                   size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                   void *cbdata)
{
    (void)code, (void)source, (void)range, (void)info, (void)ninfo;
    (void)cbfunc, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}
