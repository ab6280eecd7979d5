/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shm.c - the transport between the ranks of one node.
 *
 * Each rank has an inbox with a ring per sender. A message is a record in
 * that ring: a header, aligned to RECORD bytes, then its payload, streamed
 * through the ring in pieces. A ring is read only while something is expected
 * from its sender; what is not expected itself is put aside meanwhile. */
#include "tl/tl.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tl/early.h"
#include "tl/inbox.h"
#include "tl/ring.h"

#define RECORD ((size_t)64)
/* The other end sees a long message grow by this much at a time, so that both
 * copy at once. */
#define PIECE ((size_t)16384)

struct header {
    uint64_t tag, len;
};

struct queue {
    struct dt_tl_req *first, *last;
};

struct peer {
    size_t rank;
    int pidfd; /* -1: cannot tell */
    bool gone; /* before we connected */
    struct dt_inbox box;
    struct dt_ring out;
    struct queue sends;
    bool header_sent; /* that of the first in sends */
    struct dt_ring in;
    struct queue posted;
    struct dt_early_queue early;
    /* the message coming in: to one of these, or none */
    struct dt_tl_req *receiving;
    struct dt_early *keeping;
};

struct shm {
    struct dt_tl tl;
    size_t rank, size;
    int fd;
    struct dt_inbox_addr addr;
    struct dt_inbox box;
    size_t npeers;
    struct peer *peers;
    struct pollfd *polls;
    int32_t *peer_of; /* index into peers by rank, or -1 */
    struct dt_early_pool pool;
    bool failed;
    struct dt_error err;
};

static struct shm *shm_of(struct dt_tl *tl)
{
    return (struct shm *)tl;
}

static void enqueue(struct queue *queue, struct dt_tl_req *req)
{
    req->next = NULL;
    req->prev = queue->last;
    if (queue->last)
        queue->last->next = req;
    else
        queue->first = req;
    queue->last = req;
}

static void unqueue(struct queue *queue, struct dt_tl_req *req)
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

/* ---- failure ---- */

/* A notice in an inbox: who gave up, and which rank it misses, if any. */
#define NOBODY SIZE_MAX
static uint64_t notice_of(const struct shm *shm, size_t missing)
{
    return (uint64_t)(missing + 1) << 32 | (uint32_t)(shm->rank + 1);
}

static void drop_all(struct queue *queue)
{
    struct dt_tl_req *next;
    for (struct dt_tl_req *req = queue->first; req; req = next) {
        next = req->next;
        req->status = DT_ERR_PROC_FAILED;
    }
    *queue = (struct queue){0};
}

/* The end of this transport: tell the others, with this notice. */
__attribute__((format(printf, 3, 4))) static void
fail(struct shm *shm, uint64_t notice, const char *fmt, ...)
{
    if (shm->failed)
        return;
    shm->failed = true;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(shm->err.text, sizeof(shm->err.text), fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < shm->npeers; i++) {
        struct peer *peer = &shm->peers[i];
        drop_all(&peer->sends);
        drop_all(&peer->posted);
        if (peer->receiving)
            peer->receiving->status = DT_ERR_PROC_FAILED;
        peer->receiving = NULL;
        if (peer->box.page)
            dt_inbox_post_notice(&peer->box, notice);
    }
}

static void heed_notice(struct shm *shm)
{
    uint64_t notice = shm->box.page ? dt_inbox_notice(&shm->box) : 0;
    if (!notice || shm->failed)
        return;
    size_t by = (uint32_t)notice - 1, missing = (size_t)(notice >> 32) - 1;
    if (notice >> 32)
        fail(shm, notice, "rank %zu is gone, says rank %zu", missing, by);
    else
        fail(shm, notice, "rank %zu has given up", by);
}

/* ---- moving data ---- */

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
static bool push(struct shm *shm, struct peer *peer)
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
        fail(shm, notice_of(shm, NOBODY), "rank %zu damaged the shared memory",
             peer->rank);
    return moved;
}

static bool length_matches(struct shm *shm, struct peer *peer,
                           const struct dt_tl_req *req, uint64_t tag,
                           size_t len)
{
    if (req->len == len)
        return true;
    fail(shm, notice_of(shm, NOBODY),
         "rank %zu sent %zu bytes where rank %zu expected %zu (tag %#llx): "
         "the ranks disagree about the operation",
         peer->rank, len, shm->rank, req->len, (unsigned long long)tag);
    return false;
}

/* Begin the next message from peer; false: there is none yet. */
static bool pull_header(struct shm *shm, struct peer *peer)
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
        fail(shm, notice_of(shm, NOBODY),
             "rank %zu has no memory for %zu bytes of rank %zu", shm->rank,
             (size_t)header.len, peer->rank);
        return false;
    }
    dt_early_append(&peer->early, early);
    peer->keeping = early;
    return true;
}

/* Get one piece of the message that has begun; false: nothing there. */
static bool pull_piece(struct peer *peer)
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
static bool pull(struct shm *shm, struct peer *peer)
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
        fail(shm, notice_of(shm, NOBODY), "rank %zu damaged the shared memory",
             peer->rank);
    return moved;
}

/* ---- operations ---- */

static void shm_close(struct dt_tl *tl)
{
    struct shm *shm = shm_of(tl);
    if (!shm)
        return;
    for (size_t i = 0; i < shm->npeers; i++) {
        struct peer *peer = &shm->peers[i];
        for (struct dt_early *early; (early = peer->early.first);) {
            peer->early.first = early->next;
            dt_early_put(&shm->pool, early);
        }
        dt_inbox_unmap(&peer->box);
        if (peer->pidfd >= 0)
            close(peer->pidfd);
    }
    dt_early_pool_free(&shm->pool);
    dt_inbox_unmap(&shm->box);
    if (shm->fd >= 0)
        close(shm->fd);
    free(shm->peers);
    free(shm->polls);
    free(shm->peer_of);
    free(shm);
}

static dt_result_t shm_open(const struct dt_tl_config *config,
                            struct dt_tl **tl, struct dt_error *err)
{
    struct shm *shm = calloc(1, sizeof(*shm));
    if (!shm)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    shm->tl.ops = &dt_tl_shm;
    shm->rank = config->rank;
    shm->size = config->size;
    shm->fd = -1;
    dt_result_t result = dt_inbox_create(&shm->fd, &shm->addr, err);
    if (result != DT_SUCCESS) {
        shm_close(&shm->tl);
        return result;
    }
    *tl = &shm->tl;
    return DT_SUCCESS;
}

static void shm_address(struct dt_tl *tl, const void **addr, size_t *len)
{
    *addr = &shm_of(tl)->addr;
    *len = sizeof(shm_of(tl)->addr);
}

static dt_result_t meet(struct shm *shm, struct peer *peer, size_t slots,
                        size_t my_slot, size_t slot,
                        const struct dt_tl_peer *card, struct dt_error *err)
{
    struct dt_inbox_addr addr;
    if (card->len != sizeof(addr))
        return dt_error_set(err, DT_ERR_VERSION,
                            "rank %zu speaks another version of the shared "
                            "memory transport: use one libdt on all ranks",
                            peer->rank);
    memcpy(&addr, card->addr, sizeof(addr));
    dt_inbox_ring(&shm->box, slot, &peer->in);
    /* the pidfd first: if the inbox then is the right one, so is the pidfd */
    if (addr.pid > 0)
        peer->pidfd = (int)syscall(SYS_pidfd_open, addr.pid, 0);
    dt_result_t result =
        dt_inbox_open(&addr, peer->rank, slots, &peer->box, err);
    if (result == DT_ERR_PROC_FAILED) {
        /* what it has sent is here all the same */
        peer->gone = true;
        return DT_SUCCESS;
    }
    if (result == DT_SUCCESS)
        dt_inbox_ring(&peer->box, my_slot, &peer->out);
    return result;
}

static dt_result_t shm_connect(struct dt_tl *tl, const struct dt_tl_peer *cards,
                               struct dt_error *err)
{
    struct shm *shm = shm_of(tl);
    size_t npeers = 0, my_slot = 0;
    for (size_t rank = 0; rank < shm->size; rank++)
        if (rank != shm->rank && cards[rank].addr) {
            npeers++;
            my_slot += rank < shm->rank;
        }
    shm->peers = calloc(npeers + 1, sizeof(*shm->peers));
    shm->polls = calloc(npeers + 1, sizeof(*shm->polls));
    shm->peer_of = malloc(shm->size * sizeof(*shm->peer_of));
    if (!shm->peers || !shm->polls || !shm->peer_of)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    dt_result_t result = dt_inbox_map(shm->fd, npeers + 1, &shm->box, err);
    for (size_t rank = 0; rank < shm->size && result == DT_SUCCESS; rank++) {
        shm->peer_of[rank] = -1;
        if (rank == shm->rank || !cards[rank].addr)
            continue;
        size_t i = shm->npeers++;
        struct peer *peer = &shm->peers[i];
        shm->peer_of[rank] = (int32_t)i;
        peer->rank = rank;
        peer->pidfd = -1;
        result = meet(shm, peer, npeers + 1, my_slot, i + (i >= my_slot),
                      &cards[rank], err);
    }
    return result;
}

/* Fill a request; NULL: it is over already. */
static struct peer *prepare(struct shm *shm, size_t rank, uint64_t tag,
                            char *buf, size_t len, bool send,
                            struct dt_tl_req *req)
{
    *req = (struct dt_tl_req){.status = DT_IN_PROGRESS,
                              .tag = tag,
                              .buf = buf,
                              .len = len,
                              .peer = rank,
                              .send = send};
    if (shm->failed)
        req->status = DT_ERR_PROC_FAILED;
    else if (rank >= shm->size || shm->peer_of[rank] < 0 || !len)
        req->status = DT_ERR_INVALID_ARG;
    return req->status == DT_IN_PROGRESS ? &shm->peers[shm->peer_of[rank]]
                                         : NULL;
}

static void shm_isend(struct dt_tl *tl, size_t rank, uint64_t tag,
                      const void *buf, size_t len, struct dt_tl_req *req)
{
    struct shm *shm = shm_of(tl);
    struct peer *peer =
        prepare(shm, rank, tag, (char *)(uintptr_t)buf, len, true, req);
    if (!peer)
        return;
    enqueue(&peer->sends, req);
    if (!peer->gone && peer->sends.first == req)
        push(shm, peer);
}

static void shm_irecv(struct dt_tl *tl, size_t rank, uint64_t tag, void *buf,
                      size_t len, struct dt_tl_req *req)
{
    struct shm *shm = shm_of(tl);
    struct peer *peer = prepare(shm, rank, tag, buf, len, false, req);
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

static bool shm_progress(struct dt_tl *tl)
{
    struct shm *shm = shm_of(tl);
    bool moved = false;
    heed_notice(shm);
    for (size_t i = 0; i < shm->npeers && !shm->failed; i++) {
        struct peer *peer = &shm->peers[i];
        if (peer->sends.first && !peer->gone)
            moved |= push(shm, peer);
        if (peer->posted.first || peer->receiving)
            moved |= pull(shm, peer);
    }
    return moved;
}

static bool needed(const struct peer *peer)
{
    return peer->sends.first || peer->posted.first || peer->receiving;
}

static dt_result_t shm_check(struct dt_tl *tl, struct dt_error *err)
{
    struct shm *shm = shm_of(tl);
    heed_notice(shm);
    for (size_t i = 0; i < shm->npeers; i++)
        shm->polls[i] = (struct pollfd){
            .fd = needed(&shm->peers[i]) ? shm->peers[i].pidfd : -1,
            .events = POLLIN};
    if (!shm->failed)
        poll(shm->polls, (nfds_t)shm->npeers, 0);
    for (size_t i = 0; i < shm->npeers && !shm->failed; i++) {
        struct peer *peer = &shm->peers[i];
        if (!peer->gone && !shm->polls[i].revents)
            continue;
        /* what it sent before it went still counts */
        while (pull(shm, peer))
            ;
        if (needed(peer))
            fail(shm, notice_of(shm, peer->rank), "rank %zu is gone",
                 peer->rank);
    }
    if (shm->failed)
        return dt_error_set(err, DT_ERR_PROC_FAILED, "%s", shm->err.text);
    return DT_SUCCESS;
}

static void shm_revoke(struct dt_tl *tl)
{
    struct shm *shm = shm_of(tl);
    fail(shm, notice_of(shm, NOBODY), "rank %zu has given up", shm->rank);
}

const struct dt_tl_ops dt_tl_shm = {
    .size = sizeof(struct dt_tl_ops),
    .name = "shm",
    .open = shm_open,
    .address = shm_address,
    .connect = shm_connect,
    .isend = shm_isend,
    .irecv = shm_irecv,
    .progress = shm_progress,
    .check = shm_check,
    .revoke = shm_revoke,
    .close = shm_close,
};
