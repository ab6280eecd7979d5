/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stream.c - messages as frames on an open connection. Data go straight from
 * the buffer of the send to the socket, and from there to that of the receive,
 * if it has been posted. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tl/tcp/tcp.h"

#define READ ((size_t)64 << 10) /* bytes of dt_tcp.buffer */
/* From so many missing bytes on they are read where they belong, without a copy
 * through dt_tcp.buffer. */
#define DIRECT ((size_t)8 << 10)
#define TURNS  4 /* reads of one connection before the others' turn */

/* Bytes of unexpected messages of one peer that are kept, before it waits. */
#define UNEXPECTED ((size_t)4 << 20)

#define KIND_SHIFT DT_TAG_BITS
#define KIND_MASK  ((uint64_t)3 << KIND_SHIFT)

static const char zeros[4096];

/* The word for the next frame of this key. */
static uint64_t word_of(const struct dt_secret *key, uint64_t frame,
                        const struct dt_tcp_header *header)
{
    uint64_t bytes[4] = {htole64(frame), header->tag, header->total,
                         header->len};
    return dt_secret_word(key, bytes, sizeof(bytes));
}

/* ---- sending ---- */

static void begin_frame(struct dt_tcp_out *out, enum dt_tcp_frame kind,
                        uint64_t tag, uint64_t total, uint64_t len)
{
    out->header = (struct dt_tcp_header){
        .tag = htole64(tag | (uint64_t)kind << KIND_SHIFT),
        .total = htole64(total),
        .len = htole64(len)};
    out->header.word = word_of(&out->key, out->frames++, &out->header);
    out->header_left = sizeof(out->header);
}

/* Begin the next frame; false: there is nothing to send. */
static bool next_frame(struct dt_tcp_peer *peer)
{
    struct dt_tcp_out *out = &peer->out;
    const struct dt_tcp *tcp = peer->tcp;
    const struct dt_tl_req *req = peer->sends.first;
    if (out->revoke && !out->revoked) {
        begin_frame(out, DT_TCP_REVOKE, 0, tcp->by, tcp->missing);
        out->revoked = true;
    } else if (req) {
        size_t left = req->len - req->done;
        out->body_left = left < DT_TCP_FRAME ? left : DT_TCP_FRAME;
        begin_frame(out, out->more ? DT_TCP_MORE : DT_TCP_MESSAGE, req->tag,
                    req->len, out->body_left);
        out->more = true;
    } else if (out->shutdown && !out->shut_down) {
        begin_frame(out, DT_TCP_SHUTDOWN, 0, 0, 0);
        out->shut_down = true;
    } else {
        return false;
    }
    return true;
}

/* Of the frame that has begun, n bytes were written. */
static void wrote(struct dt_tcp_peer *peer, size_t n)
{
    struct dt_tcp_out *out = &peer->out;
    size_t header = n < out->header_left ? n : out->header_left;
    out->header_left -= header;
    n -= header;
    out->body_left -= n;
    struct dt_tl_req *req = peer->sends.first;
    if (!n || out->padded)
        return;
    req->done += n;
    if (req->done < req->len)
        return;
    dt_tl_queue_remove(&peer->sends, req);
    out->more = false;
    req->status = DT_SUCCESS;
}

static ssize_t write_frame(struct dt_tcp_peer *peer)
{
    struct dt_tcp_out *out = &peer->out;
    const struct dt_tl_req *req = peer->sends.first;
    size_t header_at = sizeof(out->header) - out->header_left;
    struct iovec parts[2] = {
        {(char *)&out->header + header_at, out->header_left},
        {NULL, out->body_left}};
    if (out->padded) {
        parts[1] = (struct iovec){(char *)zeros, out->body_left < sizeof(zeros)
                                                     ? out->body_left
                                                     : sizeof(zeros)};
    } else if (out->body_left) {
        parts[1].iov_base = req->buf + req->done;
    }
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(peer->socket.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A peer that sends much more than is expected of it has to wait. */
static bool paused(const struct dt_tcp_peer *peer)
{
    const struct dt_inbound *in = &peer->inbound;
    return in->unexpected > UNEXPECTED && !in->posted.first && !in->receiving &&
           !peer->tcp->closing;
}

void dt_tcp_watch(struct dt_tcp_peer *peer)
{
    const struct dt_tcp_out *out = &peer->out;
    uint32_t events = (paused(peer) ? 0 : EPOLLIN) |
                      (out->header_left || out->body_left ? EPOLLOUT : 0);
    struct epoll_event event = {.events = events, .data.ptr = peer};
    if (peer->state == DT_TCP_OPEN && events != peer->watched &&
        !epoll_ctl(peer->tcp->epoll, EPOLL_CTL_MOD, peer->socket.fd, &event))
        peer->watched = events;
}

bool dt_tcp_flushed(const struct dt_tcp_peer *peer)
{
    const struct dt_tcp_out *out = &peer->out;
    return !out->header_left && !out->body_left && !peer->sends.first &&
           out->revoke == out->revoked && out->shutdown == out->shut_down;
}

bool dt_tcp_flush(struct dt_tcp_peer *peer)
{
    struct dt_tcp_out *out = &peer->out;
    bool moved = false;
    for (;;) {
        if (!out->header_left && !out->body_left) {
            out->padded = false;
            if (!next_frame(peer))
                break;
        }
        ssize_t n = write_frame(peer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            /* what it sent before is still read; then its end is noticed */
            out->header_left = out->body_left = 0;
            break;
        }
        if (n < 0)
            break;
        moved = true;
        wrote(peer, (size_t)n);
    }
    dt_tcp_watch(peer);
    return moved;
}

/* ---- receiving ---- */

static void broken(struct dt_tcp_peer *peer, const char *what)
{
    size_t rank = dt_tcp_rank_of(peer);
    dt_tcp_doom(peer->tcp, peer->tcp->rank, rank + 1,
                "rank %zu is gone: its connection delivered %s", rank, what);
    dt_tcp_gone(peer);
}

static void begin_message(struct dt_tcp_peer *peer, uint64_t tag, uint64_t len)
{
    struct dt_tcp *tcp = peer->tcp;
    struct dt_tl_req *req;
    if (tcp->closing || tcp->doomed)
        return; /* it is read, and dropped */
    dt_result_t result =
        dt_inbound_begin(&peer->inbound, &tcp->pool, tag, len, &req);
    if (result == DT_ERR_INVALID_ARG)
        dt_tcp_doom(tcp, tcp->rank, 0,
                    "rank %zu sent %zu bytes where rank %zu expected %zu (tag "
                    "%#llx): the ranks disagree about the operation",
                    req->peer, (size_t)len, tcp->rank, req->len,
                    (unsigned long long)tag);
    else if (result != DT_SUCCESS)
        dt_tcp_doom(tcp, tcp->rank, 0,
                    "rank %zu has no memory for %zu bytes of rank %zu",
                    tcp->rank, (size_t)len, dt_tcp_rank_of(peer));
}

static void take_revoke(struct dt_tcp_peer *peer, size_t by, size_t missing)
{
    peer->in.revoked = true;
    if (missing)
        dt_tcp_doom(peer->tcp, by, missing,
                    "rank %zu is gone, as rank %zu reports", missing - 1, by);
    else
        dt_tcp_doom(peer->tcp, by, 0, "rank %zu has given up", by);
}

/* A header is complete. */
static void take_header(struct dt_tcp_peer *peer)
{
    struct dt_tcp_in *in = &peer->in;
    uint64_t tag = le64toh(in->header.tag);
    uint64_t total = le64toh(in->header.total), len = le64toh(in->header.len);
    in->header_got = 0;
    if (in->header.word != word_of(&in->key, in->frames++, &in->header)) {
        broken(peer, "a frame that this rank did not send");
        return;
    }
    switch ((enum dt_tcp_frame)((tag & KIND_MASK) >> KIND_SHIFT)) {
    case DT_TCP_MESSAGE:
        in->message_left = total;
        begin_message(peer, tag & ~KIND_MASK, total);
        break;
    case DT_TCP_MORE:
        break;
    case DT_TCP_REVOKE:
        take_revoke(peer, (size_t)total, (size_t)len);
        return;
    case DT_TCP_SHUTDOWN:
        in->shut_down = true;
        return;
    }
    if (!len || len > in->message_left || len > DT_TCP_FRAME) {
        broken(peer, "a frame of an impossible length");
        return;
    }
    in->body_left = len;
    in->message_left -= len;
}

/* Where the body of the frame goes; NULL: it is dropped. */
static char *room_of(const struct dt_tcp_peer *peer)
{
    size_t left;
    if (!peer->in.body_left || !dt_inbound_current(&peer->inbound))
        return NULL;
    return dt_inbound_room(&peer->inbound, &left);
}

static void took_body(struct dt_tcp_peer *peer, size_t n, bool kept)
{
    peer->in.body_left -= n;
    if (kept && n)
        dt_inbound_wrote(&peer->inbound, n);
}

/* n bytes have come that are not where they belong yet. */
static void take(struct dt_tcp_peer *peer, const char *bytes, size_t n)
{
    struct dt_tcp_in *in = &peer->in;
    while (n && peer->state == DT_TCP_OPEN) {
        size_t part;
        if (in->body_left) {
            char *room = room_of(peer);
            part = n < in->body_left ? n : in->body_left;
            if (room)
                memcpy(room, bytes, part);
            took_body(peer, part, room);
        } else {
            part = sizeof(in->header) - in->header_got;
            part = n < part ? n : part;
            memcpy((char *)&in->header + in->header_got, bytes, part);
            in->header_got += part;
            if (in->header_got == sizeof(in->header))
                take_header(peer);
        }
        bytes += part;
        n -= part;
    }
}

bool dt_tcp_receive(struct dt_tcp_peer *peer)
{
    bool moved = false;
    for (int turn = 0; turn < TURNS && peer->state == DT_TCP_OPEN; turn++) {
        char *room = peer->in.body_left >= DIRECT ? room_of(peer) : NULL;
        size_t direct = room ? peer->in.body_left : 0;
        struct iovec parts[2] = {{room, direct}, {peer->tcp->buffer, READ}};
        struct msghdr message = {.msg_iov = room ? parts : parts + 1,
                                 .msg_iovlen = room ? 2 : 1};
        ssize_t n = recvmsg(peer->socket.fd, &message, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n <= 0) {
            dt_tcp_gone(peer);
            break;
        }
        moved = true;
        size_t placed = (size_t)n < direct ? (size_t)n : direct;
        took_body(peer, placed, room);
        take(peer, peer->tcp->buffer, (size_t)n - placed);
        if ((size_t)n < direct + READ)
            break;
    }
    dt_tcp_watch(peer);
    return moved;
}
