/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* connection.c - connections between the ranks of the UCX transport, and the
 * control messages that its two ends exchange.
 *
 * A rank connects at its first send to, or receive from, a peer, so that UCX
 * watches a peer from which it only receives, too. UCX does not notify the
 * peer, so the rank sends HELLO, and the peer makes its own endpoint at the
 * latest when it receives that:
 *
 *   both    HELLO -->           my endpoint exists
 *   lower   READY -->           I have received your HELLO
 *   both    messages            lower: READY was acknowledged; higher: it came
 *
 * Until then at most one message is under way in a connection, and the caller's
 * messages wait. UCX 1.13 asserts, and aborts the process, that no peer dies
 * while something is queued for a connection that is being made.
 *
 * A peer that has ended is found by what is sent to it, by UCX's keepalive
 * (UCX_KEEPALIVE_INTERVAL, 20 s), or by the caller's time-out.
 *
 * A rank that exited at once after its last message would reset connections on
 * which it still travels. So each rank first sends SHUTDOWN to those it is
 * connected with, and waits for theirs. */
#include <sched.h>
#include <stddef.h>
#include <time.h>

#include "tl/ucx/ucx.h"

/* After so many calls of progress in which nothing happened there is nothing to
 * do; a call that finds a broken connection counts as such. */
#define IDLE_ROUNDS 32
#define MAX_ROUNDS  10000

/* Limits on the time that closing takes, in seconds. */
#define SHUTDOWN_TIME 10.0
#define FLUSH_TIME    1.0
#define LISTEN_TIME   0.1
#define REVOKE_TIME   1.0

/* ---- control messages ---- */

static void on_control_sent(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    ((struct dt_ucx *)arg)->controls_out--;
    ucp_request_free(request);
}

static void on_ready_sent(void *request, ucs_status_t status, void *arg)
{
    struct dt_ucx_peer *peer = arg;
    peer->agreed = status == UCS_OK;
    ucp_request_free(request);
}

/* READY is a synchronous send, for which UCX has to learn where the peer's
 * endpoint is. UCX does that by messages that must not queue behind others: if
 * one were queued when the connection breaks, UCX 1.13 would abort the process.
 */
static void send_ready(struct dt_ucx_peer *peer,
                       const struct dt_ucx_control *control)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_ready_sent,
                                 .user_data = peer};
    ucs_status_ptr_t request = ucp_tag_send_sync_nbx(
        peer->ep, control, sizeof(*control), peer->control_tag, &param);
    peer->agreed = request == NULL;
}

static uint64_t prove(const struct dt_ucx_peer *peer,
                      const struct dt_ucx_control *control)
{
    return dt_secret_word(&peer->key, control,
                          offsetof(struct dt_ucx_control, proof));
}

/* Send a control message; the endpoint exists. */
static void send_control(struct dt_ucx_peer *peer,
                         enum dt_ucx_control_kind kind)
{
    struct dt_ucx *ucx = peer->ucx;
    struct dt_ucx_control *control = &peer->out[kind];
    *control = (struct dt_ucx_control){.kind = kind,
                                       .from = (uint32_t)ucx->rank,
                                       .by = kind == DT_UCX_HELLO ? ucx->rdma
                                                                  : ucx->by,
                                       .missing = ucx->missing};
    control->proof = prove(peer, control);
    if (kind == DT_UCX_READY) {
        send_ready(peer, control);
        return;
    }
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_control_sent,
                                 .user_data = ucx};
    ucs_status_ptr_t request = ucp_tag_send_nbx(
        peer->ep, control, sizeof(*control), peer->control_tag, &param);
    ucx->controls_out += UCS_PTR_IS_PTR(request);
}

static void handle_control(struct dt_ucx *ucx,
                           const struct dt_ucx_control *control)
{
    struct dt_ucx_peer *peer = NULL;
    if (control->from < ucx->size)
        peer = &ucx->peers[control->from];
    if (!peer || !peer->card.addr || control->proof != prove(peer, control)) {
        ucx->strangers++;
        return;
    }
    peer->known_to_it = true;
    if (!peer->ready)
        dt_ucx_connect(peer);
    peer->revoked = peer->revoked || control->kind == DT_UCX_REVOKE;
    if (control->kind == DT_UCX_HELLO)
        peer->puts = ucx->rdma && control->by;
    else if (control->kind == DT_UCX_READY)
        peer->agreed = true;
    else if (control->kind == DT_UCX_SHUTDOWN)
        peer->shutdown = true;
    else if (control->kind == DT_UCX_REVOKE && control->missing)
        dt_ucx_doom(ucx, control->by, control->missing,
                    "rank %zu is gone, as rank %zu reports",
                    (size_t)control->missing - 1, (size_t)control->by);
    else if (control->kind == DT_UCX_REVOKE)
        dt_ucx_doom(ucx, control->by, 0, "rank %zu has given up",
                    (size_t)control->by);
}

/* What was received is a control message, or somebody's attempt at one. */
static void take_control(struct dt_ucx *ucx, ucs_status_t status)
{
    if (status == UCS_OK)
        handle_control(ucx, &ucx->in);
    else if (status == UCS_ERR_MESSAGE_TRUNCATED)
        ucx->strangers++;
}

static void on_control(void *request, ucs_status_t status,
                       const ucp_tag_recv_info_t *info, void *arg)
{
    struct dt_ucx *ucx = arg;
    (void)info;
    take_control(ucx, status);
    ucx->listening = NULL;
    ucp_request_free(request);
}

void dt_ucx_listen(struct dt_ucx *ucx)
{
    ucs_status_t status = UCS_OK;
    /* what comes before the peers are known waits in UCX */
    while (ucx->peers && !ucx->listening && status == UCS_OK) {
        ucx->in = (struct dt_ucx_control){0};
        ucp_request_param_t param = {.op_attr_mask =
                                         UCP_OP_ATTR_FIELD_CALLBACK |
                                         UCP_OP_ATTR_FIELD_USER_DATA,
                                     .cb.recv = on_control,
                                     .user_data = ucx};
        ucs_status_ptr_t request = ucp_tag_recv_nbx(
            ucx->worker, &ucx->in, sizeof(ucx->in),
            dt_ucx_control_tag(&ucx->secret), DT_UCX_MATCH, &param);
        if (UCS_PTR_IS_PTR(request)) {
            ucx->listening = request;
        } else {
            status = UCS_PTR_STATUS(request);
            take_control(ucx, status);
        }
    }
}

/* ---- connect ---- */

bool dt_ucx_connect(struct dt_ucx_peer *peer)
{
    if (peer->ready || peer->connecting || peer->dead)
        return !peer->dead;
    peer->connecting = true;
    peer->next = peer->ucx->connecting;
    peer->ucx->connecting = peer;
    return true;
}

static void on_death(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    (void)status;
    struct dt_ucx_peer *peer = arg;
    peer->dead = true;
    peer->ucx->deaths = true;
}

/* UCX 1.13 also aborts the process when an endpoint is created on a connection
 * from the peer that is broken already. Let UCX find that out first. */
static void settle(struct dt_ucx *ucx)
{
    for (int idle = 0, all = 0; idle < IDLE_ROUNDS && all < MAX_ROUNDS; all++)
        idle = ucp_worker_progress(ucx->worker) ? 0 : idle + 1;
}

/* Create the endpoint towards peer, if there is none, and send HELLO; not from
 * a callback of UCX. False: the peer is dead. */
static bool make_endpoint(struct dt_ucx_peer *peer)
{
    struct dt_ucx *ucx = peer->ucx;
    const size_t rank = dt_ucx_rank_of(peer);
    if (peer->ep || peer->dead)
        return !peer->dead;
    ucp_ep_params_t params = {.field_mask =
                                  UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                  UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = peer->card.addr,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = on_death, .arg = peer}};
    settle(ucx);
    ucs_status_t status = ucp_ep_create(ucx->worker, &params, &peer->ep);
    if (status == UCS_ERR_UNREACHABLE && !ucx->watching) {
        /* it may be that no transport here reports deaths; the caller has a
         * time-out */
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        status = ucp_ep_create(ucx->worker, &params, &peer->ep);
    }
    if (status != UCS_OK) {
        peer->ep = NULL;
        peer->dead = true;
        ucx->deaths = true;
        dt_ucx_doom(ucx, ucx->rank, rank + 1,
                    "rank %zu is gone, or UCX cannot reach it: %s; see "
                    "UCX_TLS and UCX_NET_DEVICES",
                    rank, ucs_status_string(status));
        return false;
    }
    if (params.err_mode == UCP_ERR_HANDLING_MODE_PEER)
        ucx->watching = true;
    send_control(peer, DT_UCX_HELLO);
    return true;
}

/* Do what can be done for a connection; true: that was the last step. */
static bool advance(struct dt_ucx_peer *peer)
{
    if (!make_endpoint(peer))
        return true;
    if (peer->known_to_it && !peer->ready_sent &&
        peer->ucx->rank < dt_ucx_rank_of(peer)) {
        peer->ready_sent = true;
        send_control(peer, DT_UCX_READY);
    }
    peer->ready = peer->agreed;
    return peer->ready;
}

bool dt_ucx_advance_connections(struct dt_ucx *ucx)
{
    struct dt_ucx_peer *peer = ucx->connecting, *next;
    bool any = false;
    ucx->connecting = NULL; /* callbacks add to it */
    for (; peer; peer = next) {
        next = peer->next;
        if (advance(peer)) {
            peer->connecting = false;
            any = true;
        } else {
            peer->next = ucx->connecting;
            ucx->connecting = peer;
        }
    }
    return any;
}

/* ---- close ---- */

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Progress until done(), at most so many seconds; true: done. */
static bool await(struct dt_ucx *ucx, bool (*done)(struct dt_ucx *),
                  double seconds)
{
    double end = now() + seconds;
    while (!done(ucx)) {
        if (now() > end)
            return false;
        if (!ucp_worker_progress(ucx->worker))
            sched_yield();
    }
    return true;
}

static void on_closed(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    ((struct dt_ucx *)arg)->closes--;
    ucp_request_free(request);
}

static void close_all(struct dt_ucx *ucx)
{
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (!peer->ep)
            continue;
        ucp_request_param_t param = {.op_attr_mask =
                                         UCP_OP_ATTR_FIELD_FLAGS |
                                         UCP_OP_ATTR_FIELD_CALLBACK |
                                         UCP_OP_ATTR_FIELD_USER_DATA,
                                     .flags = UCP_EP_CLOSE_FLAG_FORCE,
                                     .cb.send = on_closed,
                                     .user_data = ucx};
        ucx->closes += UCS_PTR_IS_PTR(ucp_ep_close_nbx(peer->ep, &param));
        peer->ep = NULL;
    }
}

static void on_dropped(void *request, ucs_status_t status,
                       const ucp_tag_recv_info_t *info, void *arg)
{
    (void)status;
    (void)info;
    ((struct dt_ucx *)arg)->drops--;
    ucp_request_free(request);
}

/* Receive the unexpected messages, of which UCX warns otherwise. */
static void drop_unexpected(struct dt_ucx *ucx)
{
    ucp_tag_message_h message;
    ucp_tag_recv_info_t info;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv = on_dropped,
                                 .user_data = ucx};
    for (; (message = ucp_tag_probe_nb(ucx->worker, 0, 0, 1, &info));
         ucx->strangers++)
        ucx->drops += UCS_PTR_IS_PTR(
            ucp_tag_msg_recv_nbx(ucx->worker, &ucx->in, 0, message, &param));
}

/* Send SHUTDOWN where it is due; true: all have sent it to us. */
static bool all_shut_down(struct dt_ucx *ucx)
{
    bool all = true;
    dt_ucx_listen(ucx);
    dt_ucx_advance_connections(ucx);
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (peer->dead || !(peer->ep || peer->known_to_it))
            continue;
        if (peer->ready && !peer->shutdown_sent) {
            send_control(peer, DT_UCX_SHUTDOWN);
            peer->shutdown_sent = true;
        }
        all = all && peer->shutdown_sent && peer->shutdown;
    }
    return all;
}

static bool all_closed(struct dt_ucx *ucx)
{
    return !ucx->closes && !ucx->controls_out && !ucx->drops && !ucx->listening;
}

static void flush_all(struct dt_ucx *ucx)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_closed,
                                 .user_data = ucx};
    for (size_t rank = 0; rank < ucx->size; rank++) {
        const struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (peer->ep && !peer->dead)
            ucx->closes += UCS_PTR_IS_PTR(ucp_ep_flush_nbx(peer->ep, &param));
    }
}

/* Closing without force, RDMA asks the peer's NIC whether all has arrived, and
 * repeats that for many seconds if the peer has closed already, as it may once
 * it has our SHUTDOWN. */
bool dt_ucx_shut_down(struct dt_ucx *ucx)
{
    bool good = await(ucx, all_shut_down, SHUTDOWN_TIME);
    drop_unexpected(ucx);
    if (ucx->listening)
        ucp_request_cancel(ucx->worker, ucx->listening);
    flush_all(ucx);
    await(ucx, all_closed, FLUSH_TIME);
    close_all(ucx);
    return await(ucx, all_closed, FLUSH_TIME) && good;
}

/* ---- after a failure ---- */

/* Send REVOKE to all that know this rank, also to those that connect only now;
 * true: all have received ours, as theirs shows, or are dead. */
static bool all_revoked(struct dt_ucx *ucx)
{
    bool all = true;
    dt_ucx_listen(ucx);
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (!(peer->ep || peer->known_to_it) || !make_endpoint(peer))
            continue;
        if (!peer->revoke_sent)
            send_control(peer, DT_UCX_REVOKE);
        peer->revoke_sent = true;
        all = all && peer->revoked;
    }
    return all && !ucx->controls_out;
}

static bool never(struct dt_ucx *ucx)
{
    all_revoked(ucx);
    return false;
}

static bool all_canceled(struct dt_ucx *ucx)
{
    return !ucx->closes && !ucx->pending;
}

void dt_ucx_abort(struct dt_ucx *ucx)
{
    /* a rank that connects to this one just now would wait for it in vain */
    await(ucx, never, LISTEN_TIME);
    await(ucx, all_revoked, REVOKE_TIME);
    /* RDMA moves data by itself until its connection is closed */
    close_all(ucx);
    dt_ucx_put_cancel(ucx);
    await(ucx, all_canceled, REVOKE_TIME);
}
