/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx_link.c - connections between the ranks of the UCX transport.
 *
 * A link is made at the first send or receive, so that UCX watches a peer we
 * only wait for, too. Its other end does not show itself to the peer, so a
 * HELLO makes it known, and the peer makes its own end at the latest then:
 *
 *   both    HELLO -->           my end exists
 *   lower   READY -->           I have heard yours
 *   both    messages            lower: READY was answered; higher: it came
 *
 * Until then there is never more than one message on its way, and messages of
 * the caller wait here. UCX 1.13 asserts, and aborts the process, that no peer
 * dies when something queues for a connection that is being made.
 *
 * A process that ends resets its connections, and UCX tells at once. A host
 * that vanishes is found by UCX's keepalive (UCX_KEEPALIVE_INTERVAL, 20 s) on
 * transports that have one, or by the caller's time-out. */
#include "tl/ucx.h"

/* So many rounds without progress mean that there is nothing to do: a round
 * that finds a broken connection counts as one without. */
#define IDLE_ROUNDS 32
#define ANY_ROUNDS  10000

bool dt_ucx_link(struct dt_ucx_peer *peer)
{
    if (peer->ready || peer->linking || peer->dead)
        return !peer->dead;
    peer->linking = true;
    peer->next = peer->ucx->linking;
    peer->ucx->linking = peer;
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

/* An endpoint on a connection from the peer that is broken already is another
 * abort of UCX 1.13: have it find out first. */
static void settle(struct dt_ucx *ucx)
{
    for (int idle = 0, any = 0; idle < IDLE_ROUNDS && any < ANY_ROUNDS; any++)
        idle = ucp_worker_progress(ucx->worker) ? 0 : idle + 1;
}

bool dt_ucx_reach(struct dt_ucx_peer *peer)
{
    struct dt_ucx *ucx = peer->ucx;
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
        /* perhaps no transport here notices deaths; the caller has a
         * time-out */
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        status = ucp_ep_create(ucx->worker, &params, &peer->ep);
    }
    if (status != UCS_OK) {
        peer->ep = NULL;
        peer->dead = true;
        ucx->deaths = true;
        dt_ucx_doom(ucx, ucx->rank, dt_ucx_rank_of(peer) + 1,
                    "rank %zu is gone, or UCX cannot reach it: %s; see "
                    "UCX_TLS and UCX_NET_DEVICES",
                    dt_ucx_rank_of(peer), ucs_status_string(status));
        return false;
    }
    if (params.err_mode == UCP_ERR_HANDLING_MODE_PEER)
        ucx->watching = true;
    dt_ucx_tell(peer, DT_UCX_HELLO);
    return true;
}

/* One link: do what can be done; true: that was the last. */
static bool further(struct dt_ucx_peer *peer)
{
    if (!dt_ucx_reach(peer))
        return true;
    if (peer->met && !peer->asked && peer->ucx->rank < dt_ucx_rank_of(peer)) {
        peer->asked = true;
        dt_ucx_tell(peer, DT_UCX_READY);
    }
    peer->ready = peer->agreed;
    if (peer->ready)
        dt_ucx_release(peer);
    return peer->ready;
}

void dt_ucx_tend(struct dt_ucx *ucx)
{
    struct dt_ucx_peer *peer = ucx->linking, *next;
    ucx->linking = NULL; /* callbacks add to it */
    for (; peer; peer = next) {
        next = peer->next;
        if (further(peer)) {
            peer->linking = false;
        } else {
            peer->next = ucx->linking;
            ucx->linking = peer;
        }
    }
}
