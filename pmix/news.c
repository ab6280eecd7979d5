/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* news.c - what the mesh of all nodes' servers tells this one. */
#include "news.h"

#include "core.h"
#include "event.h"

static void send_frame(void *arg, size_t node, struct dt_frame *frame)
{
    const struct dt_pmix *pmix = arg;
    pmix->launcher.send(pmix->launcher.arg, node, frame);
}

/* --- ranks --------------------------------------------------------------- */

static pmix_status_t status_of(const struct dt_mesh_rank *state)
{
    if (state->how != DT_END_EXIT || state->code)
        return PMIX_ERR_PROC_ABORTED;
    return state->finalized ? PMIX_EVENT_PROC_TERMINATED
                            : PMIX_ERR_PROC_TERM_WO_SYNC;
}

void dt_pmix_news_end(struct dt_pmix *pmix, size_t rank)
{
    const struct dt_mesh_rank *state = dt_mesh_rank(pmix->mesh, rank);
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    dt_pmix_store_forget(&pmix->store, rank, state->incarnation);
    dt_pmix_notify_end(&proc, status_of(state), state->code,
                       state->incarnation);
}

static void on_ended(void *arg, size_t rank, const struct dt_mesh_rank *state)
{
    struct dt_pmix *pmix = arg;
    (void)state;
    /* a rank of this node is settled first, client.c */
    if (pmix->job.map->node_of[rank] != pmix->job.self)
        dt_pmix_news_end(pmix, rank);
}

static void on_joined(void *arg, size_t rank, uint32_t incarnation)
{
    struct dt_pmix *pmix = arg;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    dt_pmix_notify_joined(&proc, incarnation);
}

/* --- nodes --------------------------------------------------------------- */

static void on_node_lost(void *arg, size_t node, const char *why)
{
    const struct dt_pmix *pmix = arg;
    if (pmix->launcher.node_lost)
        pmix->launcher.node_lost(pmix->launcher.arg, node, why);
}

static void on_cast_out(void *arg, const char *why)
{
    const struct dt_pmix *pmix = arg;
    on_node_lost(arg, pmix->job.self, why);
}

/* --- each other ---------------------------------------------------------- */

static void on_told(void *arg, size_t from, const void *data, size_t len)
{
    struct dt_pmix *pmix = arg;
    switch (len ? *(const unsigned char *)data : 0) {
    case DT_TELL_ABORT:
        dt_pmix_abort_told(pmix, data, len);
        break;
    case DT_TELL_EVENT:
        dt_pmix_event_told(pmix, from, (const char *)data + 1, len - 1);
        break;
    }
}

static void on_asked(void *arg, size_t from, uint64_t ticket, uint32_t what,
                     const void *data, size_t len)
{
    struct dt_pmix *pmix = arg;
    switch (what) {
    case DT_ASK_MODEX:
        dt_pmix_modex_asked(pmix, ticket, data, len);
        break;
    case DT_ASK_PUBLISH:
    case DT_ASK_LOOKUP:
    case DT_ASK_UNPUBLISH:
        dt_pmix_store_asked(pmix, from, ticket, what, data, len);
        break;
    default:
        dt_mesh_answer(pmix->mesh, ticket, PMIX_ERR_NOT_SUPPORTED, NULL, 0);
    }
}

struct dt_mesh_host dt_pmix_news_host(struct dt_pmix *pmix)
{
    return (struct dt_mesh_host){.arg = pmix,
                                 .send = send_frame,
                                 .ended = on_ended,
                                 .joined = on_joined,
                                 .told = on_told,
                                 .node_lost = on_node_lost,
                                 .cast_out = on_cast_out,
                                 .asked = on_asked};
}
