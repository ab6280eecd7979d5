/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* event.c - news for the ranks, and news from them. */
#include "event.h"

#include <pmix.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "info.h"
#include "pack.h"

/* --- news of ranks' lives ------------------------------------------------ */

static void notified(pmix_status_t status, void *cbdata)
{
    struct dt_pmix_infos *infos = cbdata;
    (void)status;
    dt_pmix_info_free(infos);
    free(infos);
}

/* Tell the ranks of this node. Takes infos; NULL: there is nothing to tell. */
static void notify(pmix_status_t code, const pmix_proc_t *source,
                   pmix_data_range_t range, struct dt_pmix_infos *infos)
{
    if (!infos)
        return;
    pmix_status_t rc = PMIx_Notify_event(code, source, range, infos->all,
                                         infos->count, notified, infos);
    if (rc != PMIX_SUCCESS)
        notified(rc, infos);
}

static struct dt_pmix_infos *life(const pmix_proc_t *proc, uint32_t incarnation)
{
    struct dt_pmix_infos *infos = calloc(1, sizeof(*infos));
    if (!infos)
        return NULL;
    dt_pmix_info_add(infos, PMIX_EVENT_AFFECTED_PROC, proc, PMIX_PROC);
    dt_pmix_info_add_uint32(infos, PMIX_REINCARNATION, incarnation);
    return infos;
}

void dt_pmix_notify_end(const pmix_proc_t *proc, pmix_status_t code,
                        int exit_code, uint32_t incarnation)
{
    const bool yes = true;
    struct dt_pmix_infos *infos = life(proc, incarnation);
    if (infos)
        dt_pmix_info_add(infos, PMIX_EXIT_CODE, &exit_code, PMIX_INT);
    if (infos && code == PMIX_EVENT_PROC_TERMINATED)
        dt_pmix_info_add(infos, PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    notify(code, proc, PMIX_RANGE_NAMESPACE, infos);
}

void dt_pmix_notify_joined(const pmix_proc_t *proc, uint32_t incarnation)
{
    const bool yes = true;
    struct dt_pmix_infos *infos = life(proc, incarnation);
    if (infos)
        dt_pmix_info_add(infos, PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    notify(DT_EVENT_PROC_JOINED, proc, PMIX_RANGE_NAMESPACE, infos);
}

/* --- from one node to all ------------------------------------------------ */

struct event_call {
    struct dt_pmix_call call;
    size_t len;
    unsigned char bytes[];
};

static void run_event(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct event_call *self = (struct event_call *)call;
    /* without memory an event is lost; the ranks' lives are not told this way
     */
    (void)dt_mesh_tell(pmix->mesh, self->bytes, self->len, NULL);
    free(self);
}

/* In PMIx's thread: what infos are is not for us to keep. */
static pmix_status_t post_event(pmix_status_t code, const pmix_proc_t *source,
                                pmix_data_range_t range,
                                const pmix_info_t *info, size_t ninfo)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(frame, 1, DT_TELL_EVENT);
    dt_frame_uint(frame, 4, (uint32_t)code);
    dt_pack_proc(frame, source);
    dt_frame_uint(frame, 1, range);
    dt_pack_infos(frame, info, ninfo);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        return PMIX_ERR_NOMEM;
    struct dt_cursor body = dt_frame_body(frame);
    size_t len = (size_t)(body.end - body.at);
    struct event_call *self = malloc(sizeof(*self) + len);
    if (self) {
        *self = (struct event_call){{NULL, run_event}, len};
        memcpy(self->bytes, body.at, len);
    }
    dt_frame_unref(frame);
    return dt_pmix_post(self ? &self->call : NULL);
}

static bool are_procs(const pmix_value_t *value)
{
    return value->type == PMIX_DATA_ARRAY &&
           value->data.darray->type == PMIX_PROC;
}

/* PMIx does not ask of what type these are before it looks into them. */
static bool are_sane(const struct dt_pmix_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++) {
        const char *key = infos->all[i].key;
        const pmix_value_t *value = &infos->all[i].value;
        if (strcmp(key, PMIX_EVENT_AFFECTED_PROC) == 0) {
            if (value->type != PMIX_PROC)
                return false;
        } else if (strcmp(key, PMIX_EVENT_AFFECTED_PROCS) == 0) {
            if (!are_procs(value))
                return false;
        } else if (strcmp(key, PMIX_EVENT_CUSTOM_RANGE) == 0) {
            if (value->type != PMIX_PROC && !are_procs(value))
                return false;
        } else if (strcmp(key, PMIX_GROUP_ID) == 0) {
            if (value->type != PMIX_STRING || !value->data.string)
                return false;
        }
    }
    return true;
}

void dt_pmix_event_told(struct dt_pmix *pmix, size_t from_node,
                        const void *data, size_t len)
{
    struct dt_cursor from = dt_cursor(data, len);
    pmix_proc_t source;
    struct dt_pmix_infos infos;
    /* PMIx has told the ranks of the node where it happened */
    if (from_node == pmix->job.self)
        return;
    pmix_status_t code = (pmix_status_t)dt_cursor_uint(&from, 4);
    if (!dt_unpack_proc(&from, &source))
        return;
    pmix_data_range_t range = (pmix_data_range_t)dt_cursor_uint(&from, 1);
    if (!dt_unpack_infos(&from, &infos))
        return;
    struct dt_pmix_infos *kept = NULL;
    if (are_sane(&infos))
        kept = malloc(sizeof(*kept));
    if (kept)
        *kept = infos;
    else
        dt_pmix_info_free(&infos);
    notify(code, &source, range, kept);
}

/* --- from PMIx ----------------------------------------------------------- */

/* PMIx tells the ranks of this node only that one of them misses its beat. What
 * it makes up has no attribute; what we tell has, and comes here as well. */
static void tell_alert(pmix_status_t code, const pmix_proc_t *source,
                       const pmix_info_t *info, size_t ninfo)
{
    struct dt_pmix_infos all = {0};
    if (dt_pmix_info_find(info, ninfo, PMIX_EVENT_AFFECTED_PROC))
        return;
    dt_pmix_info_add(&all, PMIX_EVENT_AFFECTED_PROC, source, PMIX_PROC);
    if (!all.failed)
        post_event(code, source, PMIX_RANGE_NAMESPACE, all.all, all.count);
    dt_pmix_info_free(&all);
}

/* Of several that it loses at once PMIx tells by one event: the first is its
 * source, the others are attributes. */
static void tell_lost(const pmix_proc_t *source, const pmix_info_t *info,
                      size_t ninfo)
{
    dt_pmix_lost(source);
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_PROCID) &&
            info[i].value.type == PMIX_PROC)
            dt_pmix_lost(info[i].value.data.proc);
}

static void on_event(size_t handler, pmix_status_t status,
                     const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    (void)handler, (void)results, (void)nresults;
    if (status == PMIX_ERR_LOST_CONNECTION)
        tell_lost(source, info, ninfo);
    else
        tell_alert(status, source, info, ninfo);
    if (cbfunc)
        cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

pmix_status_t dt_pmix_events_open(size_t *handler)
{
    pmix_status_t codes[] = {PMIX_ERR_LOST_CONNECTION,
                             PMIX_MONITOR_HEARTBEAT_ALERT,
                             PMIX_MONITOR_FILE_ALERT};
    /* without a callback it waits, and returns the handler's number */
    pmix_status_t rc = PMIx_Register_event_handler(
        codes, sizeof(codes) / sizeof(*codes), NULL, 0, on_event, NULL, NULL);
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
 * before it asks us. */

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

static bool is_beyond_node(pmix_data_range_t range)
{
    return range != PMIX_RANGE_LOCAL && range != PMIX_RANGE_PROC_LOCAL &&
           range != PMIX_RANGE_RM && range != PMIX_RANGE_INVALID;
}

pmix_status_t dt_pmix_notify_event(pmix_status_t code,
                                   const pmix_proc_t *source,
                                   pmix_data_range_t range, pmix_info_t info[],
                                   size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                   void *cbdata)
{
    (void)cbfunc, (void)cbdata;
    if (!is_beyond_node(range))
        return PMIX_OPERATION_SUCCEEDED;
    /* PMIx 4.2 frees info and cbdata when we return, also when we say that
     * we shall call back */
    pmix_status_t rc = post_event(code, source, range, info, ninfo);
    return rc == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : rc;
}
