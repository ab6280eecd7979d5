/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shm_message.c - messages between the ranks of one node.
 *
 * Each rank has an inbox with a ring per sender. A message is a record in
 * that ring: a header, aligned to RECORD bytes, then its payload, streamed
 * through the ring in pieces. A ring is read only while something is expected
 * from its sender; what is not expected itself is put aside meanwhile. */
#include <string.h>

#include "tl/shm.h"

#define RECORD ((size_t)64)
/* The other end sees a long message grow by this much at a time, so that both
 * copy at once. */
#define PIECE ((size_t)16384)

struct header {
    uint64_t tag, len;
};

static void enqueue(struct dt_shm_queue *queue, struct dt_tl_req *req)
{
    req->next = NULL;
    req->prev = queue->last;
    if (queue->last)
        queue->last->next = req;
    else
        queue->first = req;
    queue->last = req;
}

static void unqueue(struct dt_shm_queue *queue, struct dt_tl_req *req)
{
    if (req->prev)
        req->prev->next = req->next;
    else
        queue->first = req->next;
    if (req->next)
        req->next->prev = req->prev;
    else
        queue->last = req->prev;
}

static void drop_all(struct dt_shm_queue *queue)
{
    struct dt_tl_req *next;
    for (struct dt_tl_req *req = queue->first; req; req = next) {
        next = req->next;
        req->status = DT_ERR_PROC_FAILED;
    }
    *queue = (struct dt_shm_queue){0};
}

void dt_shm_drop(struct dt_shm_peer *peer)
{
    drop_all(&peer->sends);
    drop_all(&peer->posted);
    if (peer->receiving)
        peer->receiving->status = DT_ERR_PROC_FAILED;
    peer->receiving = NULL;
}

void dt_shm_forget(struct dt_shm *shm, struct dt_shm_peer *peer)
{
    for (struct dt_early *early; (early = peer->early.first);) {
        peer->early.first = early->next;
        dt_early_put(&shm->pool, early);
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes from position to the start of the next record. */
static size_t padding(uint64_t position)
{
    return (size_t)(-position & (RECORD - 1));
}

/* Put what fits of the messages to peer. */
bool dt_shm_push(struct dt_shm *shm, struct dt_shm_peer *peer)
{
    struct dt_ring *out = &peer->out;
    bool moved = false;
    for (struct dt_tl_req *req; (req = peer->sends.first);) {
        if (!peer->header_sent) {
            size_t pad = padding(out->tail);
            struct header header = {req->tag, req->len};
            if (dt_ring_room(out, pad + sizeof(header)) < pad + sizeof(header))
                break;
            out->tail += pad;
            dt_ring_put(out, &header, sizeof(header));
            peer->header_sent = true;
        }
        size_t piece = least(req->len - req->done, PIECE);
        piece = least(piece, dt_ring_room(out, piece));
        dt_ring_put(out, req->buf + req->done, piece);
        dt_ring_publish(out);
        dt_inbox_wake(peer->box.page);
        req->done += piece;
        moved |= piece > 0;
        if (req->done < req->len) {
            if (!piece)
                break;
            continue;
        }
        peer->header_sent = false;
        unqueue(&peer->sends, req);
        req->status = DT_SUCCESS;
    }
    if (out->corrupt)
        dt_shm_fail(shm, dt_shm_notice(shm, DT_SHM_NOBODY),
                    "rank %zu damaged the shared memory", peer->rank);
    return moved;
}

static bool length_matches(struct dt_shm *shm, struct dt_shm_peer *peer,
                           const struct dt_tl_req *req, uint64_t tag,
                           size_t len)
{
    if (req->len == len)
        return true;
    dt_shm_fail(
        shm, dt_shm_notice(shm, DT_SHM_NOBODY),
        "rank %zu sent %zu bytes where rank %zu expected %zu (tag %#llx): "
        "the ranks disagree about the operation",
        peer->rank, len, shm->rank, req->len, (unsigned long long)tag);
    return false;
}

/* Begin the next message from peer; false: there is none yet. */
static bool pull_header(struct dt_shm *shm, struct dt_shm_peer *peer)
{
    struct dt_ring *in = &peer->in;
    struct header header;
    size_t pad = padding(in->head);
    if (dt_ring_avail(in, pad + sizeof(header)) < pad + sizeof(header))
        return false;
    in->head += pad;
    dt_ring_get(in, &header, sizeof(header));
    if (!header.len || header.len > SIZE_MAX / 2) {
        in->corrupt = true;
        return false;
    }
    struct dt_tl_req *req = peer->posted.first;
    while (req && (req->tag ^ header.tag) & ~DT_TAG_NOTE)
        req = req->next;
    if (req) {
        if (!length_matches(shm, peer, req, header.tag, header.len))
            return false;
        unqueue(&peer->posted, req);
        req->tag = header.tag;
        peer->receiving = req;
        return true;
    }
    struct dt_early *early = dt_early_get(&shm->pool, header.tag, header.len);
    if (!early) {
        dt_shm_fail(shm, dt_shm_notice(shm, DT_SHM_NOBODY),
                    "rank %zu has no memory for %zu bytes of rank %zu",
                    shm->rank, (size_t)header.len, peer->rank);
        return false;
    }
    dt_early_append(&peer->early, early);
    peer->keeping = early;
    return true;
}

/* Get one piece of the message that has begun; false: nothing there. */
static bool pull_piece(struct dt_shm_peer *peer)
{
    struct dt_tl_req *req = peer->receiving;
    struct dt_early *early = peer->keeping;
    size_t *done = req ? &req->done : &early->done;
    size_t left = (req ? req->len : early->len) - *done;
    size_t piece = least(left, PIECE);
    piece = least(piece, dt_ring_avail(&peer->in, piece));
    if (!piece)
        return false;
    dt_ring_get(&peer->in, (req ? req->buf : early->data) + *done, piece);
    dt_ring_release(&peer->in);
    if (peer->box.page)
        dt_inbox_wake(peer->box.page);
    *done += piece;
    if (piece < left)
        return true;
    peer->receiving = NULL;
    peer->keeping = NULL;
    if (req)
        req->status = DT_SUCCESS;
    return true;
}

/* Get what is there from peer while anything is expected of it, at most about
 * one ring full. */
bool dt_shm_pull(struct dt_shm *shm, struct dt_shm_peer *peer)
{
    uint64_t end = peer->in.head + peer->in.capacity;
    bool moved = false;
    while ((peer->posted.first || peer->receiving) && peer->in.head < end) {
        if (!peer->receiving && !peer->keeping && !pull_header(shm, peer))
            break;
        if (!pull_piece(peer))
            break;
        moved = true;
    }
    if (peer->in.corrupt)
        dt_shm_fail(shm, dt_shm_notice(shm, DT_SHM_NOBODY),
                    "rank %zu damaged the shared memory", peer->rank);
    return moved;
}

/* Fill a request; NULL: it is over already. */
static struct dt_shm_peer *prepare(struct dt_shm *shm, size_t rank,
                                   uint64_t tag, char *buf, size_t len,
                                   bool send, struct dt_tl_req *req)
{
    *req = (struct dt_tl_req){.status = DT_IN_PROGRESS,
                              .tag = tag,
                              .buf = buf,
                              .len = len,
                              .peer = rank,
                              .send = send};
    if (dt_shm_failed(shm))
        req->status = DT_ERR_PROC_FAILED;
    else if (rank >= shm->size || shm->peer_of[rank] < 0 || !len)
        req->status = DT_ERR_INVALID_ARG;
    return req->status == DT_IN_PROGRESS ? &shm->peers[shm->peer_of[rank]]
                                         : NULL;
}

void dt_shm_isend(struct dt_tl *tl, size_t rank, uint64_t tag, const void *buf,
                  size_t len, struct dt_tl_req *req)
{
    struct dt_shm *shm = dt_shm_of(tl);
    struct dt_shm_peer *peer =
        prepare(shm, rank, tag, (char *)(uintptr_t)buf, len, true, req);
    if (!peer)
        return;
    enqueue(&peer->sends, req);
    if (!peer->gone && peer->sends.first == req)
        dt_shm_push(shm, peer);
}

void dt_shm_irecv(struct dt_tl *tl, size_t rank, uint64_t tag, void *buf,
                  size_t len, struct dt_tl_req *req)
{
    struct dt_shm *shm = dt_shm_of(tl);
    struct dt_shm_peer *peer = prepare(shm, rank, tag, buf, len, false, req);
    if (!peer)
        return;
    struct dt_early *early = dt_early_take(&peer->early, tag);
    if (!early) {
        enqueue(&peer->posted, req);
        return;
    }
    req->tag = early->tag;
    if (early->len != len) {
        enqueue(&peer->posted, req);
        length_matches(shm, peer, req, early->tag, early->len);
    } else {
        memcpy(buf, early->data, early->done);
        req->done = early->done;
        if (req->done == len)
            req->status = DT_SUCCESS;
        else
            peer->receiving = req; /* the rest goes straight there */
    }
    if (peer->keeping == early)
        peer->keeping = NULL;
    dt_early_put(&shm->pool, early);
}
