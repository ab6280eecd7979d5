/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.c - the transport between any ranks, over UCX's tagged messages. */
#include "tl/ucx/ucx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"

static struct dt_ucx *ucx_of(struct dt_tl *tl)
{
    return (struct dt_ucx *)tl;
}

/* ---- failure ---- */

/* A pending request fails; UCX may still have its part of it. */
static void give_up(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    dt_ucx_request_remove(ucx, req);
    req->status = DT_ERR_PROC_FAILED;
    if (req->handle && !dt_ucx_puts(ucx, req))
        ((struct dt_ucx_slot *)req->handle)->orphan = true;
}

static void fail(struct dt_ucx *ucx)
{
    ucx->failed = true;
    struct dt_tl_req *next;
    for (struct dt_tl_req *req = ucx->pending; req; req = next) {
        next = req->next;
        if (!req->handle)
            give_up(ucx, req);
        else if (!req->send && !dt_ucx_puts(ucx, req))
            ucp_request_cancel(ucx->worker, req->handle);
    }
    dt_ucx_abort(ucx);
    /* UCX does not touch the buffers of what is left: their connections are
     * closed, or the worker is never progressed again */
    while (ucx->pending)
        give_up(ucx, ucx->pending);
}

/* Fail if there is a reason to; true: the transport has failed. */
static bool fail_if_doomed(struct dt_ucx *ucx)
{
    if (ucx->failed)
        return true;
    for (size_t rank = 0; ucx->deaths && rank < ucx->size; rank++)
        if (ucx->peers[rank].dead && ucx->peers[rank].pending)
            dt_ucx_doom(ucx, ucx->rank, rank + 1, "rank %zu is gone", rank);
    if (ucx->doomed)
        fail(ucx);
    return ucx->failed;
}

/* ---- messages ---- */

static void received(struct dt_ucx *ucx, struct dt_tl_req *req,
                     ucs_status_t status, const ucp_tag_recv_info_t *info)
{
    if (status == UCS_OK) {
        dt_ucx_take_notice(req, info);
        if (info->length != req->len || info->sender_tag & DT_UCX_HEAD)
            status = UCS_ERR_MESSAGE_TRUNCATED;
    }
    if (status == UCS_ERR_MESSAGE_TRUNCATED)
        dt_ucx_doom_by_length(ucx, req);
    dt_ucx_request_complete(ucx, req, status);
}

/* Free a request of UCX; true: the caller's request has failed already. The
 * slot is reset, as UCX reuses it. */
static bool free_request(void *request)
{
    struct dt_ucx_slot *slot = request;
    bool orphan = slot->orphan;
    slot->orphan = false;
    ucp_request_free(request);
    return orphan;
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
    struct dt_tl_req *req = arg;
    if (!free_request(request))
        dt_ucx_request_complete(ucx_of(req->tl), req, status);
}

static void on_received(void *request, ucs_status_t status,
                        const ucp_tag_recv_info_t *info, void *arg)
{
    struct dt_tl_req *req = arg;
    ucp_tag_recv_info_t copy = *info; /* it lives in the request */
    if (!free_request(request))
        received(ucx_of(req->tl), req, status, &copy);
}

static bool prepare(struct dt_ucx *ucx, size_t rank, uint64_t tag, size_t len,
                    bool send, struct dt_tl_req *req)
{
    *req = (struct dt_tl_req){.status = DT_IN_PROGRESS,
                              .memory = req->memory,
                              .tag = tag,
                              .tl = &ucx->tl,
                              .len = len,
                              .peer = rank,
                              .send = send};
    if (ucx->failed)
        req->status = DT_ERR_PROC_FAILED;
    else if (rank >= ucx->size || !ucx->peers[rank].card.addr || !len)
        req->status = DT_ERR_INVALID_ARG;
    if (req->status != DT_IN_PROGRESS)
        return false;
    dt_ucx_request_add(ucx, req);
    return true;
}

static ucp_request_param_t describe(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .user_data = req};
    if (req->send)
        param.cb.send = on_sent;
    else
        param.cb.recv = on_received;
    if (req->memory != DT_TL_HOST) { /* UCX need not look it up */
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        param.memory_type = req->memory == DT_TL_GPU
                                ? UCS_MEMORY_TYPE_CUDA
                                : UCS_MEMORY_TYPE_CUDA_MANAGED;
        return param;
    }
#if UCP_API_VERSION >= UCP_VERSION(1, 13)
    param.memh = dt_ucx_mem_find(ucx, req->buf, req->len);
    if (param.memh)
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
#else
    (void)ucx;
#endif
    return param;
}

static void post_send(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    if (dt_ucx_puts(ucx, req)) {
        dt_ucx_put_send(ucx, req);
        return;
    }
    const struct dt_ucx_peer *peer = &ucx->peers[req->peer];
    ucp_request_param_t param = describe(ucx, req);
    ucs_status_ptr_t request = ucp_tag_send_nbx(
        peer->ep, req->buf, req->len, dt_ucx_tag(peer, true, req->tag), &param);
    if (UCS_PTR_IS_PTR(request))
        req->handle = request;
    else
        dt_ucx_request_complete(ucx, req, UCS_PTR_STATUS(request));
}

static void post_recv(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    if (dt_ucx_puts(ucx, req)) {
        dt_ucx_put_recv(ucx, req);
        return;
    }
    ucp_request_param_t param = describe(ucx, req);
    ucp_tag_t wanted = dt_ucx_tag(&ucx->peers[req->peer], false, req->tag);
    /* UCX 1.13 does not return the tag and length of a message that it received
     * at once */
    ucp_tag_recv_info_t info = {0};
    ucp_tag_probe_nb(ucx->worker, wanted, DT_UCX_MATCH, 0, &info);
    ucs_status_ptr_t request = ucp_tag_recv_nbx(ucx->worker, req->buf, req->len,
                                                wanted, DT_UCX_MATCH, &param);
    if (UCS_PTR_IS_PTR(request))
        req->handle = request;
    else
        received(ucx, req, UCS_PTR_STATUS(request), &info);
}

/* Start what has waited for peers that are ready now. */
static void post_waiting(struct dt_ucx *ucx)
{
    struct dt_tl_req *next;
    for (struct dt_tl_req *req = ucx->pending; req; req = next) {
        next = req->next;
        if (req->handle || !ucx->peers[req->peer].ready)
            continue;
        if (req->send)
            post_send(ucx, req);
        else
            post_recv(ucx, req);
    }
}

static bool ucx_takes_gpu(struct dt_tl *tl, size_t rank)
{
    const struct dt_ucx *ucx = ucx_of(tl);
    const struct dt_tl_peer *card = &ucx->peers[rank].card;
    return ucx->gpu && card->addr &&
           ((const char *)card->addr)[card->len - 1] == 1;
}

static void ucx_isend(struct dt_tl *tl, size_t rank, uint64_t tag,
                      const void *buf, size_t len, struct dt_tl_req *req)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (!prepare(ucx, rank, tag, len, true, req))
        return;
    req->buf = (char *)buf; /* only read from */
    if (ucx->peers[rank].ready)
        post_send(ucx, req);
    else
        dt_ucx_connect(&ucx->peers[rank]);
}

static void ucx_irecv(struct dt_tl *tl, size_t rank, uint64_t tag, void *buf,
                      size_t len, struct dt_tl_req *req)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (!prepare(ucx, rank, tag, len, false, req))
        return;
    req->buf = buf;
    struct dt_ucx_peer *peer = &ucx->peers[rank];
    if (!dt_ucx_connect(peer)) {
        /* what a peer sent before it died is still received */
        ucp_tag_recv_info_t info;
        if (!dt_ucx_puts(ucx, req) &&
            ucp_tag_probe_nb(ucx->worker, dt_ucx_tag(peer, false, tag),
                             DT_UCX_MATCH, 0, &info))
            post_recv(ucx, req);
    } else if (peer->ready) {
        post_recv(ucx, req);
    }
}

static bool ucx_progress(struct dt_tl *tl)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (ucx->failed)
        return false;
    bool moved = ucp_worker_progress(ucx->worker) != 0;
    dt_ucx_listen(ucx);
    if (ucx->connecting && dt_ucx_advance_connections(ucx))
        post_waiting(ucx);
    fail_if_doomed(ucx);
    return moved;
}

static dt_result_t ucx_check(struct dt_tl *tl, struct dt_error *err)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (!fail_if_doomed(ucx))
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_PROC_FAILED, "%s", ucx->err.text);
}

static bool ucx_revoked(struct dt_tl *tl)
{
    return ucx_of(tl)->failed || ucx_of(tl)->doomed;
}

static void ucx_revoke(struct dt_tl *tl)
{
    struct dt_ucx *ucx = ucx_of(tl);
    dt_ucx_doom(ucx, ucx->rank, 0, "rank %zu has given up", ucx->rank);
    fail_if_doomed(ucx);
}

/* ---- life ---- */

static void forget_secrets(struct dt_ucx *ucx)
{
    dt_secret_forget(&ucx->secret);
    for (size_t rank = 0; ucx->peers && rank < ucx->size; rank++)
        dt_secret_forget(&ucx->peers[rank].key);
}

/* At the end, as a stranger may send one after the other. */
static void report_strangers(const struct dt_ucx *ucx)
{
    if (ucx->strangers)
        fprintf(stderr,
                "dt: rank %zu dropped %zu messages that no receive asked for, "
                "from strangers or from ranks of this step (UCX does not "
                "report which)\n",
                ucx->rank, ucx->strangers);
}

static void ucx_close(struct dt_tl *tl)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (!ucx)
        return;
    if (ucx->pending)
        ucx_revoke(tl);
    bool clean = !ucx->failed && !ucx->deaths;
    if (ucx->peers && !ucx->failed)
        clean = dt_ucx_shut_down(ucx) && clean;
    while (ucx->memories)
        dt_ucx_mem_deregister(tl, ucx->memories);
    /* UCX 1.13 aborts the process when it destroys a worker that is still
     * connecting, as may happen after a failure: leak that one */
    if (clean)
        dt_ucx_stop(ucx);
    dt_ucx_put_stop(ucx);
    report_strangers(ucx);
    forget_secrets(ucx);
    free(ucx->peers);
    free(ucx->cards);
    free(ucx->card);
    free(ucx);
}

static dt_result_t ucx_open(const struct dt_tl_config *config,
                            struct dt_tl **tl, struct dt_error *err)
{
    long gpu_memory;
    dt_result_t result =
        dt_env_long(DT_ENV_GPU_DIRECT, -1, 0, 1, &gpu_memory, err);
    if (result != DT_SUCCESS)
        return result;
    struct dt_ucx *ucx = calloc(1, sizeof(*ucx));
    if (!ucx)
        return dt_no_memory(err);
    ucx->tl.ops = &dt_tl_ucx;
    ucx->size = config->size;
    ucx->secret = *config->secret;
    result = dt_ucx_start(ucx, gpu_memory, err);
    *tl = ucx->worker && result == DT_SUCCESS ? &ucx->tl : NULL;
    if (!*tl)
        ucx_close(&ucx->tl);
    return result;
}

static void ucx_address(struct dt_tl *tl, const void **addr, size_t *len)
{
    *addr = ucx_of(tl)->card;
    *len = ucx_of(tl)->card_len;
}

static void make_keys(struct dt_ucx_peer *peer, const struct dt_secret *secret)
{
    const struct dt_secret *own = &peer->ucx->secret;
    bool lower = peer->ucx->rank < dt_ucx_rank_of(peer);
    dt_secret_pair(lower ? own : secret, lower ? secret : own, "dt-ucx",
                   &peer->key);
    peer->control_tag = dt_ucx_control_tag(secret);
}

static dt_result_t ucx_connect(struct dt_tl *tl,
                               const struct dt_tl_world *world,
                               struct dt_error *err)
{
    struct dt_ucx *ucx = ucx_of(tl);
    const struct dt_tl_peer *cards = world->peers;
    ucx->rank = world->rank;
    ucx->size = world->size;
    size_t total = 1, used = 0;
    for (size_t rank = 0; rank < ucx->size; rank++)
        total += cards[rank].addr ? cards[rank].len : 0;
    ucx->cards = malloc(total);
    ucx->peers = calloc(ucx->size, sizeof(*ucx->peers));
    if (!ucx->cards || !ucx->peers)
        return dt_no_memory(err);
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        peer->ucx = ucx;
        if (rank == ucx->rank || !cards[rank].addr)
            continue;
        peer->card = (struct dt_tl_peer){ucx->cards + used, cards[rank].len};
        make_keys(peer, cards[rank].secret);
        memcpy(ucx->cards + used, cards[rank].addr, cards[rank].len);
        used += cards[rank].len;
    }
    dt_ucx_listen(ucx);
    return DT_SUCCESS;
}

const struct dt_tl_ops dt_tl_ucx = {
    .name = "ucx",
    .open = ucx_open,
    .address = ucx_address,
    .connect = ucx_connect,
    .takes_gpu = ucx_takes_gpu,
    .isend = ucx_isend,
    .irecv = ucx_irecv,
    .progress = ucx_progress,
    .check = ucx_check,
    .revoked = ucx_revoked,
    .revoke = ucx_revoke,
    .mem_register = dt_ucx_mem_register,
    .mem_deregister = dt_ucx_mem_deregister,
    .close = ucx_close,
};
