/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shm.h - the transport between the ranks of one node, inside: its state, and
 * what its files do for each other. */
#ifndef DT_TL_SHM_H
#define DT_TL_SHM_H

#include <poll.h>

#include "tl/early.h"
#include "tl/inbox.h"
#include "tl/ring.h"
#include "tl/segment.h"
#include "tl/tl.h"

struct dt_shm_board;

struct dt_shm_queue {
    struct dt_tl_req *first, *last;
};

struct dt_shm_peer {
    size_t rank;
    int pidfd; /* -1: cannot tell */
    bool gone; /* before we connected */
    struct dt_inbox box;
    struct dt_view_of *view;
    struct dt_ring out;
    struct dt_shm_queue sends;
    bool header_sent; /* that of the first in sends */
    struct dt_ring in;
    struct dt_shm_queue posted;
    struct dt_early_queue early;
    /* the message coming in: to one of these, or none */
    struct dt_tl_req *receiving;
    struct dt_early *keeping;
};

struct dt_shm {
    struct dt_tl tl;
    size_t rank, size;
    int fd;
    struct dt_inbox_addr addr;
    struct dt_inbox box;
    struct dt_segments segments;
    size_t npeers;
    struct dt_shm_peer *peers;
    struct pollfd *polls;
    int32_t *peer_of; /* index into peers by rank, or -1 */
    struct dt_early_pool pool;
    struct dt_shm_board *boards[DT_INBOX_BOARDS]; /* by id */
    /* What threads that work on boards see, and find: the rank plus 1 that
     * wrote nonsense, or whose memory cannot be mapped. */
    _Atomic bool failed;
    _Atomic uint32_t damaged, unmapped;
    struct dt_error err;
};

static inline struct dt_shm *dt_shm_of(struct dt_tl *tl)
{
    return (struct dt_shm *)tl;
}

static inline bool dt_shm_failed(const struct dt_shm *shm)
{
    return atomic_load_explicit(&shm->failed, memory_order_relaxed);
}

/* A notice in an inbox: who gave up, and which rank it misses, if any. */
#define DT_SHM_NOBODY SIZE_MAX
uint64_t dt_shm_notice(const struct dt_shm *shm, size_t missing);

/* The end of this transport: tell the others, with this notice. */
void dt_shm_fail(struct dt_shm *shm, uint64_t notice, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Messages: shm_message.c. */
void dt_shm_isend(struct dt_tl *tl, size_t rank, uint64_t tag, const void *buf,
                  size_t len, struct dt_tl_req *req);
void dt_shm_irecv(struct dt_tl *tl, size_t rank, uint64_t tag, void *buf,
                  size_t len, struct dt_tl_req *req);

/* Move what can be moved to, and from, peer; true if anything moved. */
bool dt_shm_push(struct dt_shm *shm, struct dt_shm_peer *peer);
bool dt_shm_pull(struct dt_shm *shm, struct dt_shm_peer *peer);

/* Everything that peer's messages wait for fails. */
void dt_shm_drop(struct dt_shm_peer *peer);

/* Give back what came too early. */
void dt_shm_forget(struct dt_shm *shm, struct dt_shm_peer *peer);

/* Does a message wait for peer? */
static inline bool dt_shm_expects(const struct dt_shm_peer *peer)
{
    return peer->sends.first || peer->posted.first || peer->receiving;
}

#endif
