/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* request.c - the pending messages of the UCX transport, and why it fails. */
#include <stdarg.h>
#include <stdio.h>

#include "tl/ucx/ucx.h"

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

void dt_ucx_doom_by_status(struct dt_ucx *ucx, const struct dt_tl_req *req,
                           ucs_status_t status)
{
    /* unless the transport fails anyway, UCX cancels only the requests of a
     * broken connection */
    if (status == UCS_ERR_CANCELED)
        dt_ucx_doom(ucx, ucx->rank, req->peer + 1, "rank %zu is gone",
                    req->peer);
    else if (status != UCS_OK)
        dt_ucx_doom(ucx, ucx->rank, req->peer + 1, "rank %zu is gone: %s",
                    req->peer, ucs_status_string(status));
}

void dt_ucx_doom_by_length(struct dt_ucx *ucx, const struct dt_tl_req *req)
{
    dt_ucx_doom(ucx, ucx->rank, 0,
                "rank %zu %s a message of another length than the %zu bytes "
                "rank %zu %s (tag %#llx): the ranks disagree about the "
                "operation",
                req->peer, req->send ? "expected" : "sent", req->len, ucx->rank,
                req->send ? "sent" : "expected", (unsigned long long)req->tag);
}

void dt_ucx_request_add(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    req->prev = ucx->last;
    req->next = NULL;
    if (req->prev)
        req->prev->next = req;
    else
        ucx->pending = req;
    ucx->last = req;
    ucx->peers[req->peer].pending++;
}

void dt_ucx_request_remove(struct dt_ucx *ucx, struct dt_tl_req *req)
{
    if (req->prev)
        req->prev->next = req->next;
    else
        ucx->pending = req->next;
    if (req->next)
        req->next->prev = req->prev;
    else
        ucx->last = req->prev;
    ucx->peers[req->peer].pending--;
}

void dt_ucx_request_complete(struct dt_ucx *ucx, struct dt_tl_req *req,
                             ucs_status_t status)
{
    dt_ucx_request_remove(ucx, req);
    req->handle = NULL;
    req->status = DT_SUCCESS;
    if (status == UCS_OK && !ucx->failed)
        return;
    req->status = DT_ERR_PROC_FAILED;
    dt_ucx_doom_by_status(ucx, req, status);
}
