/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shm.c - the transport between the ranks of one node.
 *
 * Each rank has an inbox with a ring per sender. A message is a record in that
 * ring: a header, aligned to RECORD bytes, then its payload, which is streamed
 * through the ring in parts. A rank reads a ring only while it expects a
 * message of that sender; messages that it does not expect are copied aside
 * meanwhile. */
#include "tl/shm/shm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RECORD ((size_t)64)
/* A long message is published in parts of this size, so that sender and
 * receiver copy at the same time. */
#define PART ((size_t)16384)

struct header {
    uint64_t tag, len;
};

/* Fail all messages to and from this peer. */
static void drop_peer(struct dt_shm_peer *peer)
{
    dt_tl_queue_fail(&peer->sends);
    dt_inbound_fail(&peer->inbound);
}

/* ---- failure ---- */

/* A notice in an inbox: the rank that gave up, and the rank that it misses, if
 * any. */
#define NO_RANK SIZE_MAX
static uint64_t notice_of(const struct dt_shm *shm, size_t missing)
{
    return (uint64_t)(missing + 1) << 32 | (uint32_t)(shm->rank + 1);
}

/* The end of this transport: post the notice to the others. */
__attribute__((format(printf, 3, 4))) static void
fail(struct dt_shm *shm, uint64_t notice, const char *fmt, ...)
{
    if (dt_shm_failed(shm))
        return;
    atomic_store_explicit(&shm->failed, true, memory_order_relaxed);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(shm->err.text, sizeof(shm->err.text), fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < shm->npeers; i++) {
        struct dt_shm_peer *peer = &shm->peers[i];
        drop_peer(peer);
        if (peer->box.page)
            dt_inbox_post_notice(&peer->box, notice);
    }
}

/* ---- messages ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes from position to the start of the next record. */
static size_t padding(uint64_t position)
{
    return (size_t)(-position & (RECORD - 1));
}

/* Write what fits of the messages to peer into its ring; true if anything
 * moved. */
static bool push(struct dt_shm *shm, struct dt_shm_peer *peer)
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
        size_t part = least(req->len - req->done, PART);
        part = least(part, dt_ring_room(out, part));
        dt_ring_put(out, req->buf + req->done, part);
        dt_ring_publish(out);
        dt_inbox_wake(peer->box.page);
        req->done += part;
        moved |= part > 0;
        if (req->done < req->len) {
            if (!part)
                break;
            continue;
        }
        peer->header_sent = false;
        dt_tl_queue_remove(&peer->sends, req);
        req->status = DT_SUCCESS;
    }
    if (out->corrupt)
        fail(shm, notice_of(shm, NO_RANK), "rank %zu damaged the shared memory",
             peer->rank);
    return moved;
}

static void fail_by_length(struct dt_shm *shm, const struct dt_shm_peer *peer,
                           const struct dt_tl_req *req, size_t sent)
{
    fail(shm, notice_of(shm, NO_RANK),
         "rank %zu sent %zu bytes where rank %zu expected %zu (tag %#llx): "
         "the ranks disagree about the operation",
         peer->rank, sent, shm->rank, req->len, (unsigned long long)req->tag);
}

/* Begin to receive the next message from peer; false: there is none yet. */
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
    struct dt_tl_req *req;
    dt_result_t result = dt_inbound_begin(&peer->inbound, &shm->pool,
                                          header.tag, header.len, &req);
    if (result == DT_ERR_INVALID_ARG)
        fail_by_length(shm, peer, req, header.len);
    else if (result != DT_SUCCESS)
        fail(shm, notice_of(shm, NO_RANK),
             "rank %zu has no memory for %zu bytes of rank %zu", shm->rank,
             (size_t)header.len, peer->rank);
    return result == DT_SUCCESS;
}

/* Receive one part of the message that has begun; false: it is not here yet. */
static bool pull_part(struct dt_shm_peer *peer)
{
    size_t left;
    char *room = dt_inbound_room(&peer->inbound, &left);
    size_t part = least(left, PART);
    part = least(part, dt_ring_avail(&peer->in, part));
    if (!part)
        return false;
    dt_ring_get(&peer->in, room, part);
    dt_ring_release(&peer->in);
    if (peer->box.page)
        dt_inbox_wake(peer->box.page);
    dt_inbound_wrote(&peer->inbound, part);
    return true;
}

/* Read what peer has sent while anything is expected of it, at most about one
 * ring full; true if anything moved. */
static bool pull(struct dt_shm *shm, struct dt_shm_peer *peer)
{
    uint64_t end = peer->in.head + peer->in.capacity;
    bool moved = false;
    const struct dt_inbound *inbound = &peer->inbound;
    while ((inbound->posted.first || inbound->receiving) &&
           peer->in.head < end) {
        if (!dt_inbound_current(inbound) && !pull_header(shm, peer))
            break;
        if (!pull_part(peer))
            break;
        moved = true;
    }
    if (peer->in.corrupt)
        fail(shm, notice_of(shm, NO_RANK), "rank %zu damaged the shared memory",
             peer->rank);
    return moved;
}

/* Fill a request and find its peer; NULL: the request is complete already. */
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

static void shm_isend(struct dt_tl *tl, size_t rank, uint64_t tag,
                      const void *buf, size_t len, struct dt_tl_req *req)
{
    struct dt_shm *shm = dt_shm_of(tl);
    struct dt_shm_peer *peer =
        prepare(shm, rank, tag, (char *)(uintptr_t)buf, len, true, req);
    if (!peer)
        return;
    dt_tl_queue_add(&peer->sends, req);
    if (!peer->gone && peer->sends.first == req)
        push(shm, peer);
}

static void shm_irecv(struct dt_tl *tl, size_t rank, uint64_t tag, void *buf,
                      size_t len, struct dt_tl_req *req)
{
    struct dt_shm *shm = dt_shm_of(tl);
    struct dt_shm_peer *peer = prepare(shm, rank, tag, buf, len, false, req);
    size_t sent;
    if (peer && !dt_inbound_post(&peer->inbound, &shm->pool, req, &sent))
        fail_by_length(shm, peer, req, sent);
}

/* Fail if another rank has posted a notice, or if a thread that works on a
 * board has found a fault. */
static void read_notices(struct dt_shm *shm)
{
    uint32_t damaged =
        atomic_load_explicit(&shm->damaged, memory_order_relaxed);
    uint32_t unmapped =
        atomic_load_explicit(&shm->unmapped, memory_order_relaxed);
    if (damaged)
        fail(shm, notice_of(shm, NO_RANK),
             "rank %u posted what rank %zu did not expect: the ranks "
             "disagree about the operation (DT_CHECK=1 tells how), or "
             "its memory is damaged",
             damaged - 1, shm->rank);
    if (unmapped)
        fail(shm, notice_of(shm, NO_RANK),
             "cannot map the memory of rank %u: allow this process more "
             "address space (ulimit -v)",
             unmapped - 1);
    uint64_t notice = shm->box.page ? dt_inbox_notice(&shm->box) : 0;
    if (!notice || dt_shm_failed(shm))
        return;
    size_t by = (uint32_t)notice - 1, missing = (size_t)(notice >> 32) - 1;
    if (notice >> 32)
        fail(shm, notice, "rank %zu is gone, as rank %zu reports", missing, by);
    else
        fail(shm, notice, "rank %zu has given up", by);
}

static void shm_close(struct dt_tl *tl)
{
    struct dt_shm *shm = dt_shm_of(tl);
    if (!shm)
        return;
    for (size_t i = 0; i < shm->npeers; i++) {
        struct dt_shm_peer *peer = &shm->peers[i];
        dt_inbound_clear(&peer->inbound, &shm->pool);
        dt_segment_view_close(peer->view);
        dt_inbox_unmap(&peer->box);
        if (peer->pidfd >= 0)
            close(peer->pidfd);
    }
    for (size_t i = 0; i < DT_INBOX_BOARDS; i++)
        if (shm->boards[i])
            dt_shm_boards.close(&shm->boards[i]->board);
    dt_segments_fini(&shm->segments);
    dt_unexpected_pool_free(&shm->pool);
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
    (void)config;
    struct dt_shm *shm = calloc(1, sizeof(*shm));
    if (!shm)
        return dt_no_memory(err);
    shm->tl = (struct dt_tl){.ops = &dt_tl_shm, .boards = &dt_shm_boards};
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
    *addr = &dt_shm_of(tl)->addr;
    *len = sizeof(dt_shm_of(tl)->addr);
}

static dt_result_t connect_peer(struct dt_shm *shm, struct dt_shm_peer *peer,
                                size_t slots, size_t my_slot, size_t slot,
                                const struct dt_tl_peer *card,
                                struct dt_error *err)
{
    struct dt_inbox_addr addr;
    if (card->len != sizeof(addr))
        return dt_error_set(err, DT_ERR_VERSION,
                            "rank %zu uses another version of the shared "
                            "memory transport: use one libdt on all ranks",
                            peer->rank);
    memcpy(&addr, card->addr, sizeof(addr));
    dt_inbox_ring(&shm->box, slot, &peer->in);
    /* the pidfd first: if the inbox then turns out to be the right one, the
     * pidfd is that of its process */
    peer->pid = addr.pid;
    if (addr.pid > 0)
        peer->pidfd = (int)syscall(SYS_pidfd_open, addr.pid, 0);
    int fd;
    dt_result_t result =
        dt_inbox_open(&addr, peer->rank, slots, &peer->box, &fd, err);
    if (result == DT_ERR_PROC_FAILED) {
        /* what it has sent is in this rank's inbox all the same */
        peer->gone = true;
        return DT_SUCCESS;
    }
    if (result != DT_SUCCESS)
        return result;
    dt_inbox_ring(&peer->box, my_slot, &peer->out);
    result = dt_segment_view_open(fd, &peer->view, err);
    if (result != DT_SUCCESS)
        close(fd);
    return result;
}

static dt_result_t shm_connect(struct dt_tl *tl,
                               const struct dt_tl_world *world,
                               struct dt_error *err)
{
    struct dt_shm *shm = dt_shm_of(tl);
    const struct dt_tl_peer *cards = world->peers;
    shm->rank = world->rank;
    shm->size = world->size;
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
        return dt_no_memory(err);
    dt_result_t result = dt_inbox_map(shm->fd, npeers + 1, &shm->box, err);
    dt_segments_init(&shm->segments, shm->fd, dt_inbox_end(npeers + 1));
    for (size_t rank = 0; rank < shm->size && result == DT_SUCCESS; rank++) {
        shm->peer_of[rank] = -1;
        if (rank == shm->rank || !cards[rank].addr)
            continue;
        size_t i = shm->npeers++;
        struct dt_shm_peer *peer = &shm->peers[i];
        shm->peer_of[rank] = (int32_t)i;
        peer->rank = rank;
        peer->pidfd = -1;
        result = connect_peer(shm, peer, npeers + 1, my_slot,
                              i + (i >= my_slot), &cards[rank], err);
    }
    return result;
}

static pid_t shm_process(const struct dt_tl *tl, size_t rank)
{
    const struct dt_shm *shm = (const struct dt_shm *)tl;
    return shm->peers[shm->peer_of[rank]].pid;
}

static bool shm_progress(struct dt_tl *tl)
{
    struct dt_shm *shm = dt_shm_of(tl);
    bool moved = false;
    read_notices(shm);
    for (size_t i = 0; i < shm->npeers && !dt_shm_failed(shm); i++) {
        struct dt_shm_peer *peer = &shm->peers[i];
        if (peer->sends.first && !peer->gone)
            moved |= push(shm, peer);
        if (peer->inbound.posted.first || peer->inbound.receiving)
            moved |= pull(shm, peer);
    }
    return moved;
}

static bool shm_revoked(struct dt_tl *tl)
{
    struct dt_shm *shm = dt_shm_of(tl);
    return dt_shm_failed(shm) || (shm->box.page && dt_inbox_notice(&shm->box));
}

/* Does a message or a board wait for this peer? */
static bool needed(struct dt_shm *shm, const struct dt_shm_peer *peer)
{
    return peer->sends.first || peer->inbound.posted.first ||
           peer->inbound.receiving || dt_shm_boards_need(shm, peer->rank);
}

static dt_result_t shm_check(struct dt_tl *tl, struct dt_error *err)
{
    struct dt_shm *shm = dt_shm_of(tl);
    read_notices(shm);
    for (size_t i = 0; i < shm->npeers; i++)
        shm->polls[i] = (struct pollfd){
            .fd = needed(shm, &shm->peers[i]) ? shm->peers[i].pidfd : -1,
            .events = POLLIN};
    if (!dt_shm_failed(shm))
        poll(shm->polls, (nfds_t)shm->npeers, 0);
    for (size_t i = 0; i < shm->npeers && !dt_shm_failed(shm); i++) {
        struct dt_shm_peer *peer = &shm->peers[i];
        if (!peer->gone && !shm->polls[i].revents)
            continue;
        /* what it sent before it went still counts */
        while (pull(shm, peer))
            ;
        if (needed(shm, peer))
            fail(shm, notice_of(shm, peer->rank), "rank %zu is gone",
                 peer->rank);
    }
    if (dt_shm_failed(shm))
        return dt_error_set(err, DT_ERR_PROC_FAILED, "%s", shm->err.text);
    return DT_SUCCESS;
}

static void shm_sleep(struct dt_tl *tl, unsigned us)
{
    struct dt_shm *shm = dt_shm_of(tl);
    if (dt_shm_failed(shm))
        return;
    dt_inbox_sleep(&shm->box, us);
}

static void shm_revoke(struct dt_tl *tl)
{
    struct dt_shm *shm = dt_shm_of(tl);
    fail(shm, notice_of(shm, NO_RANK), "rank %zu has given up", shm->rank);
}

const struct dt_tl_ops dt_tl_shm = {
    .name = "shm",
    .open = shm_open,
    .address = shm_address,
    .connect = shm_connect,
    .process = shm_process,
    .isend = shm_isend,
    .irecv = shm_irecv,
    .progress = shm_progress,
    .check = shm_check,
    .revoked = shm_revoked,
    .revoke = shm_revoke,
    .sleep = shm_sleep,
    .close = shm_close,
};
