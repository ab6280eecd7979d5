/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* event.c - events for the ranks, and events that ranks notify. */
#include <pmix.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "operations/operations.h"
#include "operations/pack.h"
#include "server/client.h"
#include "server/info.h"
#include "server/server_state.h"

/* --- the end and the replacement of ranks -------------------------------- */

static void notified(pmix_status_t status, void *cbdata)
{
    struct dt_pmix_infos *infos = cbdata;
    (void)status;
    dt_pmix_info_free(infos);
    free(infos);
}

/* Notify the ranks of this node that registered for code. Ownership of infos is
 * transferred; NULL: there was no memory. */
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

static struct dt_pmix_infos *describe(const pmix_proc_t *proc,
                                      uint32_t incarnation)
{
    struct dt_pmix_infos *infos = calloc(1, sizeof(*infos));
    if (!infos)
        return NULL;
    dt_pmix_info_add(infos, PMIX_EVENT_AFFECTED_PROC, proc, PMIX_PROC);
    dt_pmix_info_add_uint32(infos, PMIX_REINCARNATION, incarnation);
    return infos;
}

static pmix_status_t code_of(const struct dt_mesh_rank *state)
{
    if (state->how != DT_END_EXIT || state->code)
        return PMIX_ERR_PROC_ABORTED;
    return state->finalized ? PMIX_EVENT_PROC_TERMINATED
                            : PMIX_ERR_PROC_TERM_WO_SYNC;
}

static void rank_ended(struct dt_pmix *pmix, size_t rank,
                       const struct dt_mesh_rank *state)
{
    const bool yes = true;
    const pmix_status_t code = code_of(state);
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    struct dt_pmix_infos *infos = describe(&proc, state->incarnation);
    if (infos)
        dt_pmix_info_add(infos, PMIX_EXIT_CODE, &state->code, PMIX_INT);
    /* a normal end only to the ranks that registered for it by its code */
    if (infos && code == PMIX_EVENT_PROC_TERMINATED)
        dt_pmix_info_add(infos, PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    notify(code, &proc, PMIX_RANGE_NAMESPACE, infos);
}

static void rank_joined(struct dt_pmix *pmix, size_t rank, uint32_t incarnation)
{
    const bool yes = true;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    struct dt_pmix_infos *infos = describe(&proc, incarnation);
    if (infos)
        dt_pmix_info_add(infos, PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    notify(DT_EVENT_PROC_JOINED, &proc, PMIX_RANGE_NAMESPACE, infos);
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
    /* Without memory the event is lost. The ends of ranks do not come this
     * way. */
    (void)dt_mesh_broadcast(pmix->mesh, self->bytes, self->len, NULL);
    free(self);
}

/* In PMIx's thread, which owns info. */
static pmix_status_t post_event(pmix_status_t code, const pmix_proc_t *source,
                                pmix_data_range_t range,
                                const pmix_info_t *info, size_t ninfo)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(frame, 1, DT_BROADCAST_EVENT);
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

/* PMIx does not check the types of these before it reads them. */
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

/* data: code u32 | source proc | range u8 | infos of pack.h */
static void received(struct dt_pmix *pmix, size_t from_node, const void *data,
                     size_t len)
{
    struct dt_cursor from = dt_cursor(data, len);
    pmix_proc_t source;
    struct dt_pmix_infos infos;
    /* PMIx has notified the ranks of the node where it happened */
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

/* Of a rank that misses its heartbeat PMIx notifies the ranks of its node only.
 * PMIx's own event has no attribute; ours has, and comes here, too. */
static void on_alert(pmix_status_t code, const pmix_proc_t *source,
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

/* Of several ranks that it loses at once PMIx makes one event: the first is its
 * source, the others are attributes. */
static void on_lost(const pmix_proc_t *source, const pmix_info_t *info,
                    size_t ninfo)
{
    dt_pmix_client_lost(source);
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_PROCID) &&
            info[i].value.type == PMIX_PROC)
            dt_pmix_client_lost(info[i].value.data.proc);
}

static void on_event(size_t handler, pmix_status_t status,
                     const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    (void)handler, (void)results, (void)nresults;
    if (status == PMIX_ERR_LOST_CONNECTION)
        on_lost(source, info, ninfo);
    else
        on_alert(status, source, info, ninfo);
    if (cbfunc)
        cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static dt_result_t open_events(struct dt_pmix *pmix, struct dt_error *err)
{
    pmix_status_t codes[] = {PMIX_ERR_LOST_CONNECTION,
                             PMIX_MONITOR_HEARTBEAT_ALERT,
                             PMIX_MONITOR_FILE_ALERT};
    /* without a callback it waits, and returns the handler's number */
    pmix_status_t rc = PMIx_Register_event_handler(
        codes, sizeof(codes) / sizeof(*codes), NULL, 0, on_event, NULL, NULL);
    if (rc < 0)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "PMIx does not report lost ranks: %s",
                            PMIx_Error_string(rc));
    pmix->event_handler = (size_t)rc;
    return DT_SUCCESS;
}

static void close_events(struct dt_pmix *pmix)
{
    PMIx_Deregister_event_handler(pmix->event_handler, NULL, NULL);
}

/* PMIx knows which ranks have registered, and has notified those of this node
 * before it calls us. */

static pmix_status_t register_events(pmix_status_t *codes, size_t ncodes,
                                     const pmix_info_t info[], size_t ninfo,
                                     pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)codes, (void)ncodes, (void)info, (void)ninfo, (void)cbfunc;
    (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t deregister_events(pmix_status_t *codes, size_t ncodes,
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

static pmix_status_t notify_event(pmix_status_t code, const pmix_proc_t *source,
                                  pmix_data_range_t range, pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                  void *cbdata)
{
    (void)cbfunc, (void)cbdata;
    if (!is_beyond_node(range))
        return PMIX_OPERATION_SUCCEEDED;
    /* PMIx 4.2 frees info and cbdata when this returns, even if it returned
     * that it will call back */
    pmix_status_t rc = post_event(code, source, range, info, ninfo);
    return rc == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : rc;
}

static void fill(pmix_server_module_t *module)
{
    module->register_events = register_events;
    module->deregister_events = deregister_events;
    module->notify_event = notify_event;
}

const struct dt_pmix_operation dt_pmix_op_event = {.fill = fill,
                                                   .open = open_events,
                                                   .close = close_events,
                                                   .kind = DT_BROADCAST_EVENT,
                                                   .received = received,
                                                   .rank_ended = rank_ended,
                                                   .rank_joined = rank_joined};
