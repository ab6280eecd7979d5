/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tcp.c - the transport between any ranks, over TCP sockets: what serves
 * networks without RDMA. UCX has a TCP transport, too, but its listener
 * believes every connection, and one of its requests writes to any address of
 * the process; here nothing is read from a connection that has not proved to be
 * a rank's of this job (connection.c). */
#include "tl/tcp/tcp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 64

/* The buffer for what is read; stream.c. */
#define BUFFER ((size_t)64 << 10)

/* Limits on the time that closing takes, in milliseconds. */
#define SHUTDOWN_TIME 10000
#define LISTEN_TIME   100
#define REVOKE_TIME   1000

static struct dt_tcp *tcp_of(struct dt_tl *tl)
{
    return (struct dt_tcp *)tl;
}

/* ---- progress ---- */

/* Serve what is ready; wait so many milliseconds until anything is. True: bytes
 * were moved. */
static bool serve(struct dt_tcp *tcp, int wait)
{
    struct epoll_event events[EVENTS];
    bool moved = false;
    int n = epoll_wait(tcp->epoll, events, EVENTS, wait);
    for (int i = 0; i < n; i++) {
        struct dt_tcp_socket *socket = events[i].data.ptr;
        struct dt_tcp_peer *peer = (struct dt_tcp_peer *)socket;
        switch (socket->kind) {
        case DT_TCP_LISTENER:
            dt_tcp_accept(tcp);
            break;
        case DT_TCP_GUEST:
            dt_tcp_guest_ready(tcp, (struct dt_tcp_guest *)socket);
            break;
        case DT_TCP_PEER:
            if (peer->state == DT_TCP_DIALING)
                dt_tcp_dial_ready(peer);
            if (peer->state == DT_TCP_OPEN && events[i].events & ~EPOLLOUT)
                moved |= dt_tcp_receive(peer);
            if (peer->state == DT_TCP_OPEN && events[i].events & EPOLLOUT)
                moved |= dt_tcp_flush(peer);
            break;
        }
    }
    dt_tcp_tick(tcp);
    return moved;
}

/* Serve until done(), at least and at most so many milliseconds; true: done. */
static bool await(struct dt_tcp *tcp, bool (*done)(struct dt_tcp *), int least,
                  int most)
{
    int64_t start = dt_tcp_now();
    for (;;) {
        bool enough = done(tcp);
        int64_t spent = dt_tcp_now() - start;
        if ((enough && spent >= least) || spent >= most)
            return enough;
        serve(tcp, 1);
    }
}

/* ---- failure ---- */

void dt_tcp_doom(struct dt_tcp *tcp, size_t by, size_t missing, const char *fmt,
                 ...)
{
    if (tcp->doomed)
        return;
    tcp->by = by;
    tcp->missing = missing;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(tcp->err.text, sizeof(tcp->err.text), fmt, ap);
    va_end(ap);
    tcp->doomed = true;
}

void dt_tcp_gone(struct dt_tcp_peer *peer)
{
    if (peer->socket.fd >= 0)
        close(peer->socket.fd);
    peer->socket.fd = -1;
    peer->state = DT_TCP_GONE;
    peer->tcp->deaths = true;
}

/* All that are connected have our REVOKE, and we have theirs. */
static bool all_revoked(struct dt_tcp *tcp)
{
    bool all = true;
    for (size_t rank = 0; tcp->peers && rank < tcp->size; rank++) {
        struct dt_tcp_peer *peer = &tcp->peers[rank];
        if (peer->state != DT_TCP_OPEN)
            continue;
        if (!peer->out.revoke) {
            peer->out.revoke = true;
            dt_tcp_flush(peer);
        }
        all = all && dt_tcp_flushed(peer) && peer->in.revoked;
    }
    return all;
}

/* Of a message that is being sent, the peer gets zeros for the rest of the
 * frame, as its buffer is the caller's again. */
static void fail(struct dt_tcp *tcp)
{
    tcp->failed = true;
    tcp->closing = true;
    for (size_t rank = 0; tcp->peers && rank < tcp->size; rank++) {
        struct dt_tcp_peer *peer = &tcp->peers[rank];
        peer->out.padded = peer->out.body_left > 0;
        peer->out.more = false;
        dt_tl_queue_fail(&peer->sends);
        dt_inbound_fail(&peer->inbound);
    }
    /* a rank that connects to this one just now would wait for it in vain */
    await(tcp, all_revoked, LISTEN_TIME, REVOKE_TIME);
    dt_tcp_stop_listening(tcp);
}

/* Fail if there is a reason to; true: the transport has failed. */
static bool fail_if_doomed(struct dt_tcp *tcp)
{
    if (tcp->failed)
        return true;
    for (size_t rank = 0; tcp->deaths && rank < tcp->size; rank++)
        if (tcp->peers[rank].state == DT_TCP_GONE &&
            dt_tcp_needs(&tcp->peers[rank]))
            dt_tcp_doom(tcp, tcp->rank, rank + 1, "rank %zu is gone", rank);
    if (tcp->doomed)
        fail(tcp);
    return tcp->failed;
}

/* ---- messages ---- */

/* Fill a request and find its peer; NULL: the request is complete already. */
static struct dt_tcp_peer *prepare(struct dt_tcp *tcp, size_t rank,
                                   uint64_t tag, char *buf, size_t len,
                                   bool send, struct dt_tl_req *req)
{
    *req = (struct dt_tl_req){.status = DT_IN_PROGRESS,
                              .tag = tag,
                              .buf = buf,
                              .len = len,
                              .peer = rank,
                              .send = send};
    if (tcp->failed)
        req->status = DT_ERR_PROC_FAILED;
    else if (rank >= tcp->size || !tcp->peers[rank].to.n || !len)
        req->status = DT_ERR_INVALID_ARG;
    return req->status == DT_IN_PROGRESS ? &tcp->peers[rank] : NULL;
}

static void tcp_isend(struct dt_tl *tl, size_t rank, uint64_t tag,
                      const void *buf, size_t len, struct dt_tl_req *req)
{
    struct dt_tcp_peer *peer =
        prepare(tcp_of(tl), rank, tag, (char *)(uintptr_t)buf, len, true, req);
    if (!peer)
        return;
    dt_tl_queue_add(&peer->sends, req);
    if (peer->state == DT_TCP_OPEN && peer->sends.first == req)
        dt_tcp_flush(peer);
    else
        dt_tcp_connect(peer);
}

static void tcp_irecv(struct dt_tl *tl, size_t rank, uint64_t tag, void *buf,
                      size_t len, struct dt_tl_req *req)
{
    struct dt_tcp *tcp = tcp_of(tl);
    struct dt_tcp_peer *peer = prepare(tcp, rank, tag, buf, len, false, req);
    size_t sent;
    if (!peer)
        return;
    if (!dt_inbound_post(&peer->inbound, &tcp->pool, req, &sent))
        dt_tcp_doom(tcp, tcp->rank, 0,
                    "rank %zu sent %zu bytes where rank %zu expected %zu (tag "
                    "%#llx): the ranks disagree about the operation",
                    rank, sent, tcp->rank, len, (unsigned long long)req->tag);
    dt_tcp_connect(peer);
    dt_tcp_watch(peer);
}

static bool tcp_progress(struct dt_tl *tl)
{
    struct dt_tcp *tcp = tcp_of(tl);
    if (tcp->failed)
        return false;
    bool moved = serve(tcp, 0);
    fail_if_doomed(tcp);
    return moved;
}

static dt_result_t tcp_check(struct dt_tl *tl, struct dt_error *err)
{
    struct dt_tcp *tcp = tcp_of(tl);
    if (!fail_if_doomed(tcp))
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_PROC_FAILED, "%s", tcp->err.text);
}

static bool tcp_revoked(struct dt_tl *tl)
{
    return tcp_of(tl)->doomed;
}

static void tcp_revoke(struct dt_tl *tl)
{
    struct dt_tcp *tcp = tcp_of(tl);
    dt_tcp_doom(tcp, tcp->rank, 0, "rank %zu has given up", tcp->rank);
    fail_if_doomed(tcp);
}

static void tcp_sleep(struct dt_tl *tl, unsigned us)
{
    struct epoll_event event;
    int ms = (int)((us + 999) / 1000);
    epoll_wait(tcp_of(tl)->epoll, &event, 1, ms);
}

/* ---- life ---- */

/* Send SHUTDOWN where it is due; true: it was written, and all have sent it. */
static bool all_shut_down(struct dt_tcp *tcp)
{
    bool all = true;
    for (size_t rank = 0; rank < tcp->size; rank++) {
        struct dt_tcp_peer *peer = &tcp->peers[rank];
        if (peer->state != DT_TCP_OPEN)
            continue;
        if (!peer->out.shutdown) {
            peer->out.shutdown = true;
            dt_tcp_flush(peer);
        }
        all = all && dt_tcp_flushed(peer) && peer->in.shut_down;
    }
    return all;
}

static void close_peer(struct dt_tcp *tcp, struct dt_tcp_peer *peer)
{
    if (peer->socket.fd >= 0)
        close(peer->socket.fd);
    dt_inbound_clear(&peer->inbound, &tcp->pool);
    dt_secret_forget(&peer->key);
    dt_secret_forget(&peer->in.key);
    dt_secret_forget(&peer->out.key);
}

static void tcp_close(struct dt_tl *tl)
{
    struct dt_tcp *tcp = tcp_of(tl);
    if (!tcp)
        return;
    bool pending = false;
    for (size_t rank = 0; tcp->peers && rank < tcp->size; rank++)
        pending = pending || dt_tcp_needs(&tcp->peers[rank]);
    if (pending)
        tcp_revoke(tl);
    tcp->closing = true;
    if (tcp->peers && !tcp->failed)
        await(tcp, all_shut_down, 0, SHUTDOWN_TIME);
    dt_tcp_stop_listening(tcp);
    for (size_t rank = 0; tcp->peers && rank < tcp->size; rank++)
        close_peer(tcp, &tcp->peers[rank]);
    if (tcp->epoll >= 0)
        close(tcp->epoll);
    dt_unexpected_pool_free(&tcp->pool);
    dt_secret_forget(&tcp->secret);
    free(tcp->peers);
    free(tcp->buffer);
    free(tcp);
}

static dt_result_t start(struct dt_tcp *tcp, struct dt_error *err)
{
    uint16_t port;
    tcp->buffer = malloc(BUFFER);
    if (!tcp->buffer)
        return dt_no_memory(err);
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->epoll < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "epoll_create1: %s",
                            strerror(errno));
    dt_result_t result = dt_tcp_listen(tcp, &port, err);
    if (result == DT_SUCCESS)
        result = dt_tcp_addresses_own(port, &tcp->own, err);
    return result;
}

static dt_result_t tcp_open(const struct dt_tl_config *config,
                            struct dt_tl **tl, struct dt_error *err)
{
    struct dt_tcp *tcp = calloc(1, sizeof(*tcp));
    if (!tcp)
        return dt_no_memory(err);
    tcp->tl = (struct dt_tl){.ops = &dt_tl_tcp, .slow = true};
    tcp->secret = *config->secret;
    tcp->epoll = tcp->listener.fd = -1;
    dt_result_t result = start(tcp, err);
    if (result != DT_SUCCESS) {
        tcp_close(&tcp->tl);
        return result;
    }
    *tl = &tcp->tl;
    return DT_SUCCESS;
}

static void tcp_address(struct dt_tl *tl, const void **addr, size_t *len)
{
    const struct dt_tcp *tcp = tcp_of(tl);
    *addr = tcp->own.at;
    *len = tcp->own.n * sizeof(tcp->own.at[0]);
}

static dt_result_t connect_peer(struct dt_tcp *tcp, size_t rank,
                                const struct dt_tl_peer *card,
                                struct dt_error *err)
{
    struct dt_tcp_peer *peer = &tcp->peers[rank];
    const bool lower = tcp->rank < rank;
    const size_t size = sizeof(peer->to.at[0]);
    peer->tcp = tcp;
    peer->socket = (struct dt_tcp_socket){DT_TCP_PEER, -1};
    if (rank == tcp->rank || !card->addr)
        return DT_SUCCESS;
    if (!card->len || card->len % size || card->len > sizeof(peer->to.at))
        return dt_error_set(err, DT_ERR_VERSION,
                            "rank %zu uses another version of the TCP "
                            "transport: use one libdt on all ranks",
                            rank);
    memcpy(peer->to.at, card->addr, card->len);
    peer->to.n = card->len / size;
    dt_tcp_addresses_sort(&peer->to, &tcp->own);
    dt_secret_pair(lower ? &tcp->secret : card->secret,
                   lower ? card->secret : &tcp->secret, "dt-tcp", &peer->key);
    return DT_SUCCESS;
}

static dt_result_t tcp_connect(struct dt_tl *tl,
                               const struct dt_tl_world *world,
                               struct dt_error *err)
{
    struct dt_tcp *tcp = tcp_of(tl);
    const struct dt_tl_peer *cards = world->peers;
    tcp->rank = world->rank;
    tcp->size = world->size;
    dt_result_t result = DT_SUCCESS;
    struct dt_tcp_peer *peers = calloc(tcp->size, sizeof(*peers));
    if (!peers)
        return dt_no_memory(err);
    tcp->peers = peers;
    for (size_t rank = 0; rank < tcp->size; rank++) {
        peers[rank].socket = (struct dt_tcp_socket){DT_TCP_PEER, -1};
        if (result == DT_SUCCESS)
            result = connect_peer(tcp, rank, &cards[rank], err);
    }
    dt_secret_forget(&tcp->secret);
    return result;
}

const struct dt_tl_ops dt_tl_tcp = {
    .name = "tcp",
    .open = tcp_open,
    .address = tcp_address,
    .connect = tcp_connect,
    .isend = tcp_isend,
    .irecv = tcp_irecv,
    .progress = tcp_progress,
    .check = tcp_check,
    .revoked = tcp_revoked,
    .revoke = tcp_revoke,
    .sleep = tcp_sleep,
    .close = tcp_close,
};
