/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx_link.c - connections between the ranks of the UCX transport.
 *
 * An endpoint is made at the first send or receive, so that UCX watches a
 * peer we only wait for, too. Its other end does not show itself to the peer,
 * so a HELLO makes it known. At the end a rank that left at once would reset
 * connections on which its last messages still travel: everybody first says
 * BYE to those it is connected with, and waits for theirs.
 *
 * A process that ends resets its connections, and UCX tells at once. A host
 * that vanishes is found by UCX's keepalive (UCX_KEEPALIVE_INTERVAL, 20 s) on
 * transports that have one, or by the caller's time-out. */
#include "tl/ucx.h"

#include <sched.h>
#include <time.h>

/* how long the end may take, in seconds */
#define PART_TIME 10.0
#define CUT_TIME  1.0

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

bool dt_ucx_wait(struct dt_ucx *ucx, bool (*done)(struct dt_ucx *),
                 double seconds)
{
    double end = now() + seconds;
    while (!done(ucx)) {
        if (ucp_worker_progress(ucx->worker))
            continue;
        if (now() > end)
            return false;
        sched_yield();
    }
    return true;
}

static size_t rank_of(const struct dt_ucx_peer *peer)
{
    return (size_t)(peer - peer->ucx->peers);
}

/* ---- notes ---- */

static void on_note_sent(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    ((struct dt_ucx *)arg)->notes_out--;
    ucp_request_free(request);
}

static void tell(struct dt_ucx_peer *peer, enum dt_ucx_note_kind kind)
{
    struct dt_ucx *ucx = peer->ucx;
    struct dt_ucx_note *note = &ucx->out[kind];
    *note = (struct dt_ucx_note){
        .kind = kind, .from = (uint32_t)ucx->rank, .missing = ucx->missing};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_note_sent,
                                 .user_data = ucx};
    ucs_status_ptr_t request = ucp_tag_send_nbx(peer->ep, note, sizeof(*note),
                                                DT_UCX_NOTE_TAG, &param);
    ucx->notes_out += UCS_PTR_IS_PTR(request);
}

static void heed(struct dt_ucx *ucx, const struct dt_ucx_note *note)
{
    if (!note->kind || note->from >= ucx->size ||
        !ucx->peers[note->from].card.addr)
        return;
    struct dt_ucx_peer *peer = &ucx->peers[note->from];
    peer->met = true;
    if (note->kind == DT_UCX_BYE)
        peer->bye = true;
    else if (note->kind == DT_UCX_REVOKE && note->missing)
        dt_ucx_doom(ucx, note->by, note->missing,
                    "rank %zu is gone, says rank %zu",
                    (size_t)note->missing - 1, (size_t)note->by);
    else if (note->kind == DT_UCX_REVOKE)
        dt_ucx_doom(ucx, note->by, 0, "rank %zu has given up",
                    (size_t)note->by);
}

static void on_note(void *request, ucs_status_t status,
                    const ucp_tag_recv_info_t *info, void *arg)
{
    struct dt_ucx *ucx = arg;
    (void)info;
    if (status == UCS_OK)
        heed(ucx, &ucx->in);
    ucx->listening = NULL;
    ucp_request_free(request);
}

void dt_ucx_listen(struct dt_ucx *ucx)
{
    while (!ucx->listening) {
        ucx->in = (struct dt_ucx_note){0};
        ucp_request_param_t param = {.op_attr_mask =
                                         UCP_OP_ATTR_FIELD_CALLBACK |
                                         UCP_OP_ATTR_FIELD_USER_DATA,
                                     .cb.recv = on_note,
                                     .user_data = ucx};
        ucs_status_ptr_t request =
            ucp_tag_recv_nbx(ucx->worker, &ucx->in, sizeof(ucx->in),
                             DT_UCX_NOTE_TAG, DT_UCX_RANK_MASK, &param);
        if (UCS_PTR_IS_PTR(request))
            ucx->listening = request;
        else if (UCS_PTR_IS_ERR(request))
            return;
        else
            heed(ucx, &ucx->in);
    }
}

/* ---- endpoints ---- */

static void on_death(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    (void)status;
    struct dt_ucx_peer *peer = arg;
    peer->dead = true;
    peer->ucx->deaths = true;
}

bool dt_ucx_link(struct dt_ucx_peer *peer)
{
    if (peer->ep || peer->dead)
        return !peer->dead;
    ucp_ep_params_t params = {.field_mask =
                                  UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                  UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = peer->card.addr,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = on_death, .arg = peer}};
    ucs_status_t status = ucp_ep_create(peer->ucx->worker, &params, &peer->ep);
    if (status == UCS_ERR_UNREACHABLE && !peer->ucx->watching) {
        /* perhaps no transport here notices deaths; the caller has a
         * time-out */
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        status = ucp_ep_create(peer->ucx->worker, &params, &peer->ep);
    }
    if (status != UCS_OK) {
        peer->ep = NULL;
        peer->dead = true;
        peer->ucx->deaths = true;
        dt_ucx_doom(peer->ucx, peer->ucx->rank, rank_of(peer) + 1,
                    "rank %zu is gone, or UCX cannot reach it: %s; see "
                    "UCX_TLS and UCX_NET_DEVICES",
                    rank_of(peer), ucs_status_string(status));
        return false;
    }
    if (params.err_mode == UCP_ERR_HANDLING_MODE_PEER)
        peer->ucx->watching = true;
    tell(peer, DT_UCX_HELLO);
    return true;
}

static void on_closed(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    ((struct dt_ucx *)arg)->closes--;
    ucp_request_free(request);
}

static void close_all(struct dt_ucx *ucx, uint32_t flags)
{
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (!peer->ep)
            continue;
        ucp_request_param_t param = {.op_attr_mask =
                                         UCP_OP_ATTR_FIELD_FLAGS |
                                         UCP_OP_ATTR_FIELD_CALLBACK |
                                         UCP_OP_ATTR_FIELD_USER_DATA,
                                     .flags = flags,
                                     .cb.send = on_closed,
                                     .user_data = ucx};
        if (peer->dead)
            param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        ucx->closes += UCS_PTR_IS_PTR(ucp_ep_close_nbx(peer->ep, &param));
        peer->ep = NULL;
    }
}

/* ---- the end ---- */

static void on_dropped(void *request, ucs_status_t status,
                       const ucp_tag_recv_info_t *info, void *arg)
{
    (void)status;
    (void)info;
    ((struct dt_ucx *)arg)->drops--;
    ucp_request_free(request);
}

/* Receive what nobody has wanted; UCX complains of it otherwise. */
static void drop_all(struct dt_ucx *ucx)
{
    ucp_tag_message_h message;
    ucp_tag_recv_info_t info;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv = on_dropped,
                                 .user_data = ucx};
    while ((message = ucp_tag_probe_nb(ucx->worker, 0, 0, 1, &info)))
        ucx->drops += UCS_PTR_IS_PTR(
            ucp_tag_msg_recv_nbx(ucx->worker, &ucx->in, 0, message, &param));
}

/* Say BYE to those who need to hear it; true: all have said it to us. */
static bool parted(struct dt_ucx *ucx)
{
    bool all = true;
    dt_ucx_listen(ucx);
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (!(peer->ep || peer->met) || !dt_ucx_link(peer))
            continue;
        if (!peer->said_bye)
            tell(peer, DT_UCX_BYE);
        peer->said_bye = true;
        all = all && peer->bye;
    }
    return all;
}

static bool closed(struct dt_ucx *ucx)
{
    return !ucx->closes && !ucx->notes_out && !ucx->drops && !ucx->listening;
}

bool dt_ucx_part(struct dt_ucx *ucx)
{
    bool good = dt_ucx_wait(ucx, parted, PART_TIME);
    drop_all(ucx);
    if (ucx->listening)
        ucp_request_cancel(ucx->worker, ucx->listening);
    close_all(ucx, 0);
    return dt_ucx_wait(ucx, closed, PART_TIME) && good;
}

static bool told(struct dt_ucx *ucx)
{
    return !ucx->notes_out;
}

static bool cut(struct dt_ucx *ucx)
{
    return !ucx->closes && !ucx->pending;
}

void dt_ucx_cut(struct dt_ucx *ucx)
{
    dt_ucx_listen(ucx);
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        if ((peer->ep || peer->met) && dt_ucx_link(peer))
            tell(peer, DT_UCX_REVOKE);
    }
    dt_ucx_wait(ucx, told, CUT_TIME);
    close_all(ucx, UCP_EP_CLOSE_FLAG_FORCE);
    dt_ucx_wait(ucx, cut, CUT_TIME);
}
