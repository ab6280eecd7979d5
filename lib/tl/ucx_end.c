/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx_end.c - how the UCX transport closes its connections.
 *
 * A rank that left at once would reset connections on which its last messages
 * still travel: everybody first says BYE to those it is connected with, and
 * waits for theirs. */
#include <sched.h>
#include <time.h>

#include "tl/ucx.h"

/* how long the end may take, in seconds */
#define PART_TIME  10.0
#define FLUSH_TIME 1.0
#define HEAR_TIME  0.1
#define CUT_TIME   1.0

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

static void on_ended(void *request, ucs_status_t status, void *arg)
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
                                     .cb.send = on_ended,
                                     .user_data = ucx};
        if (peer->dead)
            param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        ucx->closes += UCS_PTR_IS_PTR(ucp_ep_close_nbx(peer->ep, &param));
        peer->ep = NULL;
    }
}

/* ---- in good order ---- */

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
    dt_ucx_tend(ucx);
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (peer->dead || !(peer->ep || peer->met))
            continue;
        if (peer->ready && !peer->said_bye) {
            dt_ucx_tell(peer, DT_UCX_BYE);
            peer->said_bye = true;
        }
        all = all && peer->said_bye && peer->bye;
    }
    return all;
}

static bool closed(struct dt_ucx *ucx)
{
    return !ucx->closes && !ucx->notes_out && !ucx->drops && !ucx->listening;
}

static void flush_all(struct dt_ucx *ucx)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_ended,
                                 .user_data = ucx};
    for (size_t rank = 0; rank < ucx->size; rank++) {
        const struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (peer->ep && !peer->dead)
            ucx->closes += UCS_PTR_IS_PTR(ucp_ep_flush_nbx(peer->ep, &param));
    }
}

/* RDMA asks the peer's network whether all has arrived, and asks for many
 * seconds if that has closed already, as it may once it has our BYE. */
static bool close_flushed(struct dt_ucx *ucx)
{
    flush_all(ucx);
    await(ucx, closed, FLUSH_TIME);
    close_all(ucx, UCP_EP_CLOSE_FLAG_FORCE);
    return await(ucx, closed, FLUSH_TIME);
}

bool dt_ucx_part(struct dt_ucx *ucx)
{
    bool good = await(ucx, parted, PART_TIME);
    drop_all(ucx);
    if (ucx->listening)
        ucp_request_cancel(ucx->worker, ucx->listening);
    if (ucx->rdma)
        return close_flushed(ucx) && good;
    close_all(ucx, 0);
    return await(ucx, closed, PART_TIME) && good;
}

/* ---- after a failure ---- */

/* Tell those who need to hear it, also those who come only now; true: all have
 * our note, as theirs says, or are gone. */
static bool told(struct dt_ucx *ucx)
{
    bool all = true;
    dt_ucx_listen(ucx);
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        if (!(peer->ep || peer->met) || !dt_ucx_reach(peer))
            continue;
        if (!peer->said_over)
            dt_ucx_tell(peer, DT_UCX_REVOKE);
        peer->said_over = true;
        all = all && peer->over;
    }
    return all && !ucx->notes_out;
}

static bool never(struct dt_ucx *ucx)
{
    told(ucx);
    return false;
}

static bool cut(struct dt_ucx *ucx)
{
    return !ucx->closes && !ucx->pending;
}

void dt_ucx_cut(struct dt_ucx *ucx)
{
    /* who connects to us just now would wait for us in vain */
    await(ucx, never, HEAR_TIME);
    await(ucx, told, CUT_TIME);
    /* RDMA goes on by itself until its connection is closed. Over TCP nothing
     * comes any more, as the worker is never progressed again; and a closed
     * connection looks like a death to those who have not read our note. */
    if (!ucx->rdma)
        return;
    close_all(ucx, UCP_EP_CLOSE_FLAG_FORCE);
    dt_ucx_put_cancel(ucx);
    await(ucx, cut, CUT_TIME);
}
