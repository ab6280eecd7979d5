/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx_note.c - what the UCX transports of two ranks tell each other. */
#include "tl/ucx.h"

static void on_note_sent(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    ((struct dt_ucx *)arg)->notes_out--;
    ucp_request_free(request);
}

static void on_ready_sent(void *request, ucs_status_t status, void *arg)
{
    struct dt_ucx_peer *peer = arg;
    peer->agreed = status == UCS_OK;
    ucp_request_free(request);
}

/* READY asks for an answer, for which UCX has to learn where the peer's end
 * is. It does so by messages that must not queue behind others: were one in a
 * queue when the connection breaks, UCX 1.13 would abort the process. */
static void tell_ready(struct dt_ucx_peer *peer, const struct dt_ucx_note *note)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_ready_sent,
                                 .user_data = peer};
    ucs_status_ptr_t request = ucp_tag_send_sync_nbx(
        peer->ep, note, sizeof(*note), DT_UCX_NOTE_TAG, &param);
    peer->agreed = request == NULL;
}

void dt_ucx_tell(struct dt_ucx_peer *peer, enum dt_ucx_note_kind kind)
{
    struct dt_ucx *ucx = peer->ucx;
    struct dt_ucx_note *note = &ucx->out[kind];
    *note =
        (struct dt_ucx_note){.kind = kind,
                             .from = (uint32_t)ucx->rank,
                             .by = kind == DT_UCX_HELLO ? ucx->rdma : ucx->by,
                             .missing = ucx->missing};
    if (kind == DT_UCX_READY) {
        tell_ready(peer, note);
        return;
    }
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
    if (!peer->ready)
        dt_ucx_link(peer);
    peer->over = peer->over || note->kind == DT_UCX_REVOKE;
    if (note->kind == DT_UCX_HELLO)
        peer->puts = ucx->rdma && note->by;
    else if (note->kind == DT_UCX_READY)
        peer->agreed = true;
    else if (note->kind == DT_UCX_BYE)
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
