/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* put.c - long messages of the UCX transport over RDMA.
 *
 * A long tagged message of UCX 1.13 makes progress only while the receiver is
 * inside UCX. Here the receiver sends the address of its buffer to the sender
 * when it posts the receive, and the sender puts the data there:
 *
 *   sender    HEAD -->       in place of the message: its length
 *   receiver  TICKET -->     for such a tag: the address, and a number
 *   sender    the data
 *   sender    DONE -->       to that number, when all data have arrived
 *
 * HEAD and TICKET are sent at once and may cross. For memory that cannot be
 * pinned, the ticket has no key: then DONE is a message with the data. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tl/ucx/ucx.h"

struct ticket {
    uint64_t len, number;
    uint64_t addr; /* in the receiver */
    struct dt_ucx_key key;
};

/* One such message, at one of its ends. */
struct dt_ucx_put {
    struct dt_ucx *ucx;
    struct dt_tl_req *req;
    struct dt_ucx_put *next; /* of all there are */
    struct dt_ucx_put *idle; /* of those not in use */
    /* the next step, when UCX has done all parts of this one and none failed */
    void (*then)(struct dt_ucx_put *put);
    size_t parts;
    ucs_status_t status;
    void *waits[2]; /* the receives among the parts */
    uint64_t head;  /* length of the message, as in HEAD */
    struct ticket ticket;
    ucp_mem_h memh;  /* receiver: the buffer is pinned for this message */
    ucp_rkey_h rkey; /* sender */
};

/* ---- parts of a step ---- */

static void end(struct dt_ucx_put *put)
{
    struct dt_ucx *ucx = put->ucx;
    if (put->rkey)
        ucp_rkey_destroy(put->rkey);
    if (put->memh)
        ucp_mem_unmap(ucx->context, put->memh);
    put->idle = ucx->idle;
    ucx->idle = put;
    dt_ucx_request_complete(ucx, put->req, put->status);
}

/* A part has ended. If it failed, so does the transport, which cancels what is
 * left of the others. */
static void over(struct dt_ucx_put *put, ucs_status_t status)
{
    if (put->status == UCS_OK)
        put->status = status;
    if (status != UCS_OK)
        dt_ucx_doom_by_status(put->ucx, put->req, status);
    if (--put->parts > 0)
        return;
    if (put->status == UCS_OK && !put->ucx->failed)
        put->then(put);
    else
        end(put);
}

/* A step is: start, parts, over. The start counts as a part, so that the step
 * does not end before all its parts have begun. */
static void start(struct dt_ucx_put *put, void (*then)(struct dt_ucx_put *))
{
    put->parts = 1;
    put->then = then;
}

static void on_moved(void *request, ucs_status_t status, void *arg)
{
    ucp_request_free(request);
    over(arg, status);
}

static ucp_request_param_t moving(struct dt_ucx_put *put)
{
    return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_moved,
                                 .user_data = put};
}

/* Count a part that UCX has begun; it may have ended already. */
static void moved(struct dt_ucx_put *put, ucs_status_ptr_t request)
{
    put->parts++;
    if (!UCS_PTR_IS_PTR(request))
        over(put, UCS_PTR_STATUS(request));
}

static const struct dt_ucx_peer *peer_of(const struct dt_ucx_put *put)
{
    return &put->ucx->peers[put->req->peer];
}

static ucp_ep_h ep_of(const struct dt_ucx_put *put)
{
    return peer_of(put)->ep;
}

static void send_part(struct dt_ucx_put *put, uint64_t tag, const void *buf,
                      size_t len)
{
    ucp_request_param_t param = moving(put);
    tag = dt_ucx_tag(peer_of(put), true, tag);
    moved(put, ucp_tag_send_nbx(ep_of(put), buf, len, tag, &param));
}

static void forget(struct dt_ucx_put *put, void *request)
{
    for (size_t i = 0; i < 2; i++)
        if (put->waits[i] == request)
            put->waits[i] = NULL;
    ucp_request_free(request);
}

static void on_received(void *request, ucs_status_t status,
                        const ucp_tag_recv_info_t *info, void *arg)
{
    struct dt_ucx_put *put = arg;
    (void)info;
    forget(put, request);
    over(put, status);
}

/* Receive a message of the peer with exactly this tag. */
static void recv_part(struct dt_ucx_put *put, uint64_t tag, void *buf,
                      size_t len)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv = on_received,
                                 .user_data = put};
    tag = dt_ucx_tag(peer_of(put), false, tag);
    ucs_status_ptr_t request =
        ucp_tag_recv_nbx(put->ucx->worker, buf, len, tag, UINT64_MAX, &param);
    if (UCS_PTR_IS_PTR(request))
        put->waits[0] = request;
    moved(put, request);
}

/* ---- the sender ---- */

static void put_done(struct dt_ucx_put *put)
{
    start(put, end);
    send_part(put, put->ticket.number | DT_UCX_DONE, NULL, 0);
    over(put, UCS_OK);
}

/* The ticket has arrived. The flush completes when all data are in the memory
 * of the receiver, the put when the send buffer may be used again. */
static void put_bytes(struct dt_ucx_put *put)
{
    const struct ticket *ticket = &put->ticket;
    const struct dt_tl_req *req = put->req;
    if (ticket->len != req->len || ticket->key.len > sizeof(ticket->key.rkey)) {
        start(put, end);
        dt_ucx_doom_by_length(put->ucx, req);
        over(put, UCS_ERR_MESSAGE_TRUNCATED);
        return;
    }
    if (!ticket->key.len) {
        start(put, end);
        send_part(put, ticket->number | DT_UCX_DONE, req->buf, req->len);
        over(put, UCS_OK);
        return;
    }
    start(put, put_done);
    ucs_status_t status =
        ucp_ep_rkey_unpack(ep_of(put), ticket->key.rkey, &put->rkey);
    if (status == UCS_OK) {
        ucp_request_param_t param = moving(put);
        moved(put, ucp_put_nbx(ep_of(put), req->buf, req->len, ticket->addr,
                               put->rkey, &param));
        moved(put, ucp_ep_flush_nbx(ep_of(put), &param));
    }
    over(put, status);
}

/* ---- the receiver ---- */

static void headed(struct dt_ucx_put *put, ucs_status_t status,
                   const ucp_tag_recv_info_t *info)
{
    struct dt_tl_req *req = put->req;
    if (status == UCS_OK) {
        bool head =
            info->sender_tag & DT_UCX_HEAD && info->length == sizeof(put->head);
        dt_ucx_take_notice(req, info);
        if (!head || put->head != req->len)
            status = UCS_ERR_MESSAGE_TRUNCATED;
    }
    if (status == UCS_ERR_MESSAGE_TRUNCATED)
        dt_ucx_doom_by_length(put->ucx, req);
    over(put, status);
}

static void on_headed(void *request, ucs_status_t status,
                      const ucp_tag_recv_info_t *info, void *arg)
{
    ucp_tag_recv_info_t copy = *info; /* it lives in the request */
    forget(arg, request);
    headed(arg, status, &copy);
}

/* Receive HEAD, which has the tag of the message itself. */
static void recv_head(struct dt_ucx_put *put)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv = on_headed,
                                 .user_data = put};
    ucp_worker_h worker = put->ucx->worker;
    ucp_tag_t tag = dt_ucx_tag(peer_of(put), false, put->req->tag);
    ucp_tag_recv_info_t info = {0};
    ucp_tag_probe_nb(worker, tag, DT_UCX_MATCH, 0, &info);
    put->parts++;
    ucs_status_ptr_t request = ucp_tag_recv_nbx(
        worker, &put->head, sizeof(put->head), tag, DT_UCX_MATCH, &param);
    if (UCS_PTR_IS_PTR(request))
        put->waits[1] = request;
    else
        headed(put, UCS_PTR_STATUS(request), &info);
}

/* ---- both ---- */

static struct dt_ucx_put *take(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    struct dt_ucx_put *put = ucx->idle;
    if (put) {
        ucx->idle = put->idle;
    } else {
        put = malloc(sizeof(*put));
        if (!put) {
            dt_ucx_doom(ucx, ucx->rank, 0, "rank %zu is out of memory",
                        ucx->rank);
            return NULL;
        }
        put->next = ucx->puts;
        ucx->puts = put;
    }
    *put = (struct dt_ucx_put){.ucx = ucx, .req = req, .next = put->next};
    req->handle = put;
    return put;
}

void dt_ucx_put_send(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    struct dt_ucx_put *put = take(ucx, req);
    if (!put)
        return;
    put->head = req->len;
    start(put, put_bytes);
    send_part(put, req->tag | DT_UCX_HEAD, &put->head, sizeof(put->head));
    recv_part(put, (req->tag & ~DT_TAG_NOTICE) | DT_UCX_TICKET, &put->ticket,
              sizeof(put->ticket));
    over(put, UCS_OK);
}

void dt_ucx_put_recv(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    struct dt_ucx_put *put = take(ucx, req);
    if (!put)
        return;
    struct ticket *ticket = &put->ticket;
    ticket->len = req->len;
    ticket->number = ucx->tickets++ & (((uint64_t)1 << DT_TAG_BITS) - 1);
    ticket->addr = (uintptr_t)req->buf;
    put->memh = dt_ucx_mem_key(ucx, req->buf, req->len, &ticket->key);
    bool keyed = ticket->key.len;
    start(put, end);
    recv_part(put, ticket->number | DT_UCX_DONE, keyed ? NULL : req->buf,
              keyed ? 0 : req->len);
    recv_head(put);
    send_part(put, (req->tag & ~DT_TAG_NOTICE) | DT_UCX_TICKET, ticket,
              offsetof(struct ticket, key.rkey) + ticket->key.len);
    over(put, UCS_OK);
}

void dt_ucx_put_cancel(struct dt_ucx *ucx)
{
    for (struct dt_tl_req *req = ucx->pending, *next; req; req = next) {
        next = req->next;
        struct dt_ucx_put *put = req->handle;
        if (!put || !dt_ucx_puts(ucx, req))
            continue;
        put->parts++; /* it must not end before both are canceled */
        for (size_t i = 0; i < 2; i++)
            if (put->waits[i])
                ucp_request_cancel(ucx->worker, put->waits[i]);
        over(put, UCS_ERR_CANCELED);
    }
}

void dt_ucx_put_stop(struct dt_ucx *ucx)
{
    struct dt_ucx_put *put;
    while ((put = ucx->puts)) {
        ucx->puts = put->next;
        free(put);
    }
}
