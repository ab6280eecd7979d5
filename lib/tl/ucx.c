/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.c - the transport between any ranks, over UCX's tagged messages. */
#include "tl/ucx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In front of each request of UCX. */
struct slot {
    bool orphan; /* the caller has got its answer already */
};

static struct dt_ucx *ucx_of(struct dt_tl *tl)
{
    return (struct dt_ucx *)tl;
}

/* ---- failure ---- */

void dt_ucx_doom(struct dt_ucx *ucx, size_t by, size_t missing, const char *fmt,
                 ...)
{
    if (ucx->doomed)
        return;
    ucx->doomed = true;
    ucx->by = by;
    ucx->missing = missing;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ucx->err.text, sizeof(ucx->err.text), fmt, ap);
    va_end(ap);
}

static void enlist(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    req->prev = NULL;
    req->next = ucx->pending;
    if (req->next)
        req->next->prev = req;
    ucx->pending = req;
    ucx->peers[req->peer].pending++;
}

static void delist(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    if (req->prev)
        req->prev->next = req->next;
    else
        ucx->pending = req->next;
    if (req->next)
        req->next->prev = req->prev;
    ucx->peers[req->peer].pending--;
}

static void give_up(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    delist(ucx, req);
    req->status = DT_ERR_PROC_FAILED;
    if (req->handle)
        ((struct slot *)req->handle)->orphan = true;
}

static void fail(struct dt_ucx *ucx)
{
    ucx->failed = true;
    struct dt_tl_req *next;
    for (struct dt_tl_req *req = ucx->pending; req; req = next) {
        next = req->next;
        if (!req->handle)
            give_up(ucx, req);
        else if (!req->send)
            ucp_request_cancel(ucx->worker, req->handle);
    }
    dt_ucx_cut(ucx);
    /* what UCX still has, it has no connection any more to fill it from, and
     * the worker is never progressed again */
    while (ucx->pending)
        give_up(ucx, ucx->pending);
}

/* Fail if there is a reason; true: this transport is at its end. */
static bool judge(struct dt_ucx *ucx)
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

static void complete(struct dt_ucx *ucx, struct dt_tl_req *req,
                     ucs_status_t status)
{
    delist(ucx, req);
    req->handle = NULL;
    req->status = DT_SUCCESS;
    if (status == UCS_OK && !ucx->failed)
        return;
    req->status = DT_ERR_PROC_FAILED;
    if (status != UCS_OK && status != UCS_ERR_CANCELED)
        dt_ucx_doom(ucx, ucx->rank, req->peer + 1, "rank %zu is gone: %s",
                    req->peer, ucs_status_string(status));
}

static void received(struct dt_ucx *ucx, struct dt_tl_req *req,
                     ucs_status_t status, const ucp_tag_recv_info_t *info)
{
    if (status == UCS_OK)
        req->tag = info->sender_tag & ~DT_UCX_RANK_MASK;
    if (status == UCS_ERR_MESSAGE_TRUNCATED ||
        (status == UCS_OK && info->length != req->len)) {
        dt_ucx_doom(ucx, ucx->rank, 0,
                    "rank %zu sent a message of another length than the %zu "
                    "bytes rank %zu expected (tag %#llx): the ranks disagree "
                    "about the operation",
                    req->peer, req->len, ucx->rank,
                    (unsigned long long)req->tag);
        status = UCS_ERR_MESSAGE_TRUNCATED;
    }
    complete(ucx, req, status);
}

/* Was the request abandoned? Leaves UCX's part of it as it found it. */
static bool give_back(void *request)
{
    struct slot *slot = request;
    bool orphan = slot->orphan;
    slot->orphan = false;
    ucp_request_free(request);
    return orphan;
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
    struct dt_tl_req *req = arg;
    if (!give_back(request))
        complete(ucx_of(req->tl), req, status);
}

static void on_received(void *request, ucs_status_t status,
                        const ucp_tag_recv_info_t *info, void *arg)
{
    struct dt_tl_req *req = arg;
    ucp_tag_recv_info_t copy = *info; /* it lives in the request */
    if (!give_back(request))
        received(ucx_of(req->tl), req, status, &copy);
}

static bool prepare(struct dt_ucx *ucx, size_t rank, uint64_t tag, size_t len,
                    bool send, struct dt_tl_req *req)
{
    *req = (struct dt_tl_req){.status = DT_IN_PROGRESS,
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
    enlist(ucx, req);
    return true;
}

static void ucx_isend(struct dt_tl *tl, size_t rank, uint64_t tag,
                      const void *buf, size_t len, struct dt_tl_req *req)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (!prepare(ucx, rank, tag, len, true, req) ||
        !dt_ucx_link(&ucx->peers[rank]))
        return;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_sent,
                                 .user_data = req};
    ucs_status_ptr_t request =
        ucp_tag_send_nbx(ucx->peers[rank].ep, buf, len,
                         tag | (uint64_t)ucx->rank << DT_TAG_BITS, &param);
    if (UCS_PTR_IS_PTR(request))
        req->handle = request;
    else
        complete(ucx, req, UCS_PTR_STATUS(request));
}

static void ucx_irecv(struct dt_tl *tl, size_t rank, uint64_t tag, void *buf,
                      size_t len, struct dt_tl_req *req)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (!prepare(ucx, rank, tag, len, false, req))
        return;
    /* what a peer sent before it went still counts; and UCX 1.13 does not
     * tell what it received at once */
    ucp_tag_recv_info_t info;
    ucp_tag_t wanted = tag | (uint64_t)rank << DT_TAG_BITS;
    bool linked = dt_ucx_link(&ucx->peers[rank]);
    if (!ucp_tag_probe_nb(ucx->worker, wanted, ~DT_TAG_NOTE, 0, &info) &&
        !linked)
        return;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv = on_received,
                                 .user_data = req};
    ucs_status_ptr_t request =
        ucp_tag_recv_nbx(ucx->worker, buf, len, wanted, ~DT_TAG_NOTE, &param);
    if (UCS_PTR_IS_PTR(request))
        req->handle = request;
    else
        received(ucx, req, UCS_PTR_STATUS(request), &info);
}

static bool ucx_progress(struct dt_tl *tl)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (ucx->failed)
        return false;
    bool moved = ucp_worker_progress(ucx->worker) != 0;
    dt_ucx_listen(ucx);
    judge(ucx);
    return moved;
}

static dt_result_t ucx_check(struct dt_tl *tl, struct dt_error *err)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (!judge(ucx))
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_PROC_FAILED, "%s", ucx->err.text);
}

static void ucx_revoke(struct dt_tl *tl)
{
    struct dt_ucx *ucx = ucx_of(tl);
    dt_ucx_doom(ucx, ucx->rank, 0, "rank %zu has given up", ucx->rank);
    judge(ucx);
}

/* ---- life ---- */

static void ucx_close(struct dt_tl *tl)
{
    struct dt_ucx *ucx = ucx_of(tl);
    if (!ucx)
        return;
    if (ucx->pending)
        ucx_revoke(tl);
    bool clean = !ucx->failed && !ucx->deaths;
    if (ucx->peers && !ucx->failed)
        clean = dt_ucx_part(ucx) && clean;
    if (ucx->addr)
        ucp_worker_release_address(ucx->worker, ucx->addr);
    /* UCX 1.13 aborts the process when it destroys a worker that is still
     * connecting, as may be after a failure: leave that one to the exit */
    if (ucx->worker && clean)
        ucp_worker_destroy(ucx->worker);
    if (ucx->context && clean)
        ucp_cleanup(ucx->context);
    free(ucx->peers);
    free(ucx->cards);
    free(ucx);
}

static void init_slot(void *request)
{
    ((struct slot *)request)->orphan = false;
}

static dt_result_t explain(ucs_status_t status, const char *what,
                           struct dt_error *err)
{
    return dt_error_set(
        err, status == UCS_ERR_NO_MEMORY ? DT_ERR_NO_MEMORY : DT_ERR_SYSTEM,
        "UCX cannot %s: %s; see UCX_TLS and UCX_NET_DEVICES", what,
        ucs_status_string(status));
}

static dt_result_t start(struct dt_ucx *ucx, struct dt_error *err)
{
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return explain(status, "read its configuration", err);
    /* An eager zero-copy send over TCP to a peer that dies ends in an
     * assertion of UCX 1.13; large messages go by rendezvous anyway. */
    if (!getenv("UCX_ZCOPY_THRESH"))
        ucp_config_modify(config, "ZCOPY_THRESH", "inf");
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES |
                                         UCP_PARAM_FIELD_REQUEST_SIZE |
                                         UCP_PARAM_FIELD_REQUEST_INIT |
                                         UCP_PARAM_FIELD_TAG_SENDER_MASK |
                                         UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                           .features = UCP_FEATURE_TAG,
                           .request_size = sizeof(struct slot),
                           .request_init = init_slot,
                           .tag_sender_mask = DT_UCX_RANK_MASK,
                           .estimated_num_eps = ucx->size};
    status = ucp_init(&params, config, &ucx->context);
    ucp_config_release(config);
    if (status != UCS_OK)
        return explain(status, "start", err);
    ucp_worker_params_t wparams = {.field_mask =
                                       UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCS_THREAD_MODE_SINGLE};
    status = ucp_worker_create(ucx->context, &wparams, &ucx->worker);
    if (status != UCS_OK)
        return explain(status, "make a worker", err);
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS |
                                            UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
                              .address_flags =
                                  UCP_WORKER_ADDRESS_FLAG_NET_ONLY};
    status = ucp_worker_query(ucx->worker, &attr);
    if (status != UCS_OK)
        return explain(status, "tell its address", err);
    ucx->addr = attr.address;
    ucx->addr_len = attr.address_length;
    return DT_SUCCESS;
}

static dt_result_t ucx_open(const struct dt_tl_config *config,
                            struct dt_tl **tl, struct dt_error *err)
{
    if (config->size > DT_UCX_MAX_RANKS)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "%zu ranks: the UCX transport knows %zu at most",
                            config->size, DT_UCX_MAX_RANKS);
    struct dt_ucx *ucx = calloc(1, sizeof(*ucx));
    if (!ucx)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    ucx->tl.ops = &dt_tl_ucx;
    ucx->rank = config->rank;
    ucx->size = config->size;
    dt_result_t result = start(ucx, err);
    if (result != DT_SUCCESS) {
        ucx_close(&ucx->tl);
        return result;
    }
    *tl = &ucx->tl;
    return DT_SUCCESS;
}

static void ucx_address(struct dt_tl *tl, const void **addr, size_t *len)
{
    *addr = ucx_of(tl)->addr;
    *len = ucx_of(tl)->addr_len;
}

static dt_result_t ucx_connect(struct dt_tl *tl, const struct dt_tl_peer *cards,
                               struct dt_error *err)
{
    struct dt_ucx *ucx = ucx_of(tl);
    size_t total = 1, used = 0;
    for (size_t rank = 0; rank < ucx->size; rank++)
        total += cards[rank].addr ? cards[rank].len : 0;
    ucx->cards = malloc(total);
    ucx->peers = calloc(ucx->size, sizeof(*ucx->peers));
    if (!ucx->cards || !ucx->peers)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    for (size_t rank = 0; rank < ucx->size; rank++) {
        struct dt_ucx_peer *peer = &ucx->peers[rank];
        peer->ucx = ucx;
        if (rank == ucx->rank || !cards[rank].addr)
            continue;
        peer->card = (struct dt_tl_peer){ucx->cards + used, cards[rank].len};
        memcpy(ucx->cards + used, cards[rank].addr, cards[rank].len);
        used += cards[rank].len;
    }
    dt_ucx_listen(ucx);
    return DT_SUCCESS;
}

const struct dt_tl_ops dt_tl_ucx = {
    .size = sizeof(struct dt_tl_ops),
    .name = "ucx",
    .open = ucx_open,
    .address = ucx_address,
    .connect = ucx_connect,
    .isend = ucx_isend,
    .irecv = ucx_irecv,
    .progress = ucx_progress,
    .check = ucx_check,
    .revoke = ucx_revoke,
    .close = ucx_close,
};
