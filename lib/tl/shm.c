/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shm.c - the transport between the ranks of one node: its life and its end.
 */
#include "tl/shm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tl/board.h"

/* ---- failure ---- */

uint64_t dt_shm_notice(const struct dt_shm *shm, size_t missing)
{
    return (uint64_t)(missing + 1) << 32 | (uint32_t)(shm->rank + 1);
}

void dt_shm_fail(struct dt_shm *shm, uint64_t notice, const char *fmt, ...)
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
        dt_shm_drop(peer);
        if (peer->box.page)
            dt_inbox_post_notice(&peer->box, notice);
    }
}

/* What the others have written for this rank, and what threads that work on
 * boards have found. */
static void heed_notices(struct dt_shm *shm)
{
    uint32_t damaged =
        atomic_load_explicit(&shm->damaged, memory_order_relaxed);
    uint32_t unmapped =
        atomic_load_explicit(&shm->unmapped, memory_order_relaxed);
    if (damaged)
        dt_shm_fail(shm, dt_shm_notice(shm, DT_SHM_NOBODY),
                    "rank %u showed what rank %zu did not expect: the ranks "
                    "disagree about the operation (DT_CHECK=1 tells how), or "
                    "its memory is damaged",
                    damaged - 1, shm->rank);
    if (unmapped)
        dt_shm_fail(shm, dt_shm_notice(shm, DT_SHM_NOBODY),
                    "cannot map the memory of rank %u: allow this process more "
                    "address space (ulimit -v)",
                    unmapped - 1);
    uint64_t notice = shm->box.page ? dt_inbox_notice(&shm->box) : 0;
    if (!notice || dt_shm_failed(shm))
        return;
    size_t by = (uint32_t)notice - 1, missing = (size_t)(notice >> 32) - 1;
    if (notice >> 32)
        dt_shm_fail(shm, notice, "rank %zu is gone, says rank %zu", missing,
                    by);
    else
        dt_shm_fail(shm, notice, "rank %zu has given up", by);
}

static void shm_close(struct dt_tl *tl)
{
    struct dt_shm *shm = dt_shm_of(tl);
    if (!shm)
        return;
    for (size_t i = 0; i < shm->npeers; i++) {
        struct dt_shm_peer *peer = &shm->peers[i];
        dt_shm_forget(shm, peer);
        dt_view_close(peer->view);
        dt_inbox_unmap(&peer->box);
        if (peer->pidfd >= 0)
            close(peer->pidfd);
    }
    for (size_t i = 0; i < DT_INBOX_BOARDS; i++)
        dt_board_close(shm->boards[i] ? &shm->boards[i]->board : NULL);
    dt_segments_fini(&shm->segments);
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
    struct dt_shm *shm = calloc(1, sizeof(*shm));
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
    *addr = &dt_shm_of(tl)->addr;
    *len = sizeof(dt_shm_of(tl)->addr);
}

static dt_result_t meet(struct dt_shm *shm, struct dt_shm_peer *peer,
                        size_t slots, size_t my_slot, size_t slot,
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
    int fd;
    dt_result_t result =
        dt_inbox_open(&addr, peer->rank, slots, &peer->box, &fd, err);
    if (result == DT_ERR_PROC_FAILED) {
        /* what it has sent is here all the same */
        peer->gone = true;
        return DT_SUCCESS;
    }
    if (result != DT_SUCCESS)
        return result;
    dt_inbox_ring(&peer->box, my_slot, &peer->out);
    result = dt_view_open(fd, &peer->view, err);
    if (result != DT_SUCCESS)
        close(fd);
    return result;
}

static dt_result_t shm_connect(struct dt_tl *tl, const struct dt_tl_peer *cards,
                               struct dt_error *err)
{
    struct dt_shm *shm = dt_shm_of(tl);
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
        result = meet(shm, peer, npeers + 1, my_slot, i + (i >= my_slot),
                      &cards[rank], err);
    }
    return result;
}

static bool shm_progress(struct dt_tl *tl)
{
    struct dt_shm *shm = dt_shm_of(tl);
    bool moved = false;
    heed_notices(shm);
    for (size_t i = 0; i < shm->npeers && !dt_shm_failed(shm); i++) {
        struct dt_shm_peer *peer = &shm->peers[i];
        if (peer->sends.first && !peer->gone)
            moved |= dt_shm_push(shm, peer);
        if (peer->posted.first || peer->receiving)
            moved |= dt_shm_pull(shm, peer);
    }
    return moved;
}

static bool shm_revoked(struct dt_tl *tl)
{
    struct dt_shm *shm = dt_shm_of(tl);
    return dt_shm_failed(shm) || (shm->box.page && dt_inbox_notice(&shm->box));
}

static bool needed(struct dt_shm *shm, const struct dt_shm_peer *peer)
{
    return dt_shm_expects(peer) || dt_board_expects(shm, peer->rank);
}

static dt_result_t shm_check(struct dt_tl *tl, struct dt_error *err)
{
    struct dt_shm *shm = dt_shm_of(tl);
    heed_notices(shm);
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
        while (dt_shm_pull(shm, peer))
            ;
        if (needed(shm, peer))
            dt_shm_fail(shm, dt_shm_notice(shm, peer->rank), "rank %zu is gone",
                        peer->rank);
    }
    if (dt_shm_failed(shm))
        return dt_error_set(err, DT_ERR_PROC_FAILED, "%s", shm->err.text);
    return DT_SUCCESS;
}

static void shm_nap(struct dt_tl *tl, unsigned us)
{
    struct dt_shm *shm = dt_shm_of(tl);
    if (dt_shm_failed(shm))
        return;
    dt_inbox_sleep(&shm->box, us);
}

static dt_result_t shm_mem_alloc(struct dt_tl *tl, size_t size, void **ptr,
                                 struct dt_error *err)
{
    uint64_t offset;
    dt_result_t result =
        dt_segment_alloc(&dt_shm_of(tl)->segments, size, ptr, &offset, err);
    if (result == DT_SUCCESS)
        dt_segment_enlarge(*ptr, size);
    return result;
}

static dt_result_t shm_mem_free(struct dt_tl *tl, void *ptr,
                                struct dt_error *err)
{
    if (dt_segment_free(&dt_shm_of(tl)->segments, ptr))
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%p is not the start of memory that was allocated "
                        "here and not freed yet",
                        ptr);
}

static void shm_revoke(struct dt_tl *tl)
{
    struct dt_shm *shm = dt_shm_of(tl);
    dt_shm_fail(shm, dt_shm_notice(shm, DT_SHM_NOBODY), "rank %zu has given up",
                shm->rank);
}

const struct dt_tl_ops dt_tl_shm = {
    .size = sizeof(struct dt_tl_ops),
    .name = "shm",
    .open = shm_open,
    .address = shm_address,
    .connect = shm_connect,
    .takes_gpu = dt_tl_no_takes_gpu,
    .isend = dt_shm_isend,
    .irecv = dt_shm_irecv,
    .progress = shm_progress,
    .check = shm_check,
    .revoked = shm_revoked,
    .revoke = shm_revoke,
    .nap = shm_nap,
    .board_open = dt_board_open,
    .board_close = dt_board_close,
    .post = dt_board_post,
    .peek = dt_board_peek,
    .pass = dt_board_pass,
    .passed = dt_board_passed,
    .mem_alloc = shm_mem_alloc,
    .mem_free = shm_mem_free,
    .mem_register = dt_tl_no_mem_register,
    .mem_deregister = dt_tl_no_mem_deregister,
    .close = shm_close,
};
