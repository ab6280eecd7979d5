/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shm.h - the state of the shared memory transport, for its own files: shm.c
 * (messages and life) and board.c (boards). */
#ifndef DT_TL_SHM_SHM_H
#define DT_TL_SHM_SHM_H

#include <poll.h>

#include "tl/board.h"
#include "tl/matching.h"
#include "tl/shm/inbox.h"
#include "tl/shm/ring.h"
#include "tl/shm/segment.h"

struct dt_shm_peer {
    size_t rank;
    pid_t pid;
    int pidfd; /* -1: the end of its process cannot be noticed */
    bool gone; /* it had ended before this rank connected */
    struct dt_inbox box;
    struct dt_segment_view *view;
    struct dt_ring out;
    struct dt_tl_queue sends;
    bool header_sent; /* that of the first in sends */
    struct dt_ring in;
    struct dt_inbound inbound;
};

struct dt_shm {
    struct dt_tl tl;
    size_t rank, size;
    int fd; /* of this rank's shared memory */
    struct dt_inbox_addr addr;
    struct dt_inbox box;
    struct dt_segments segments;
    size_t npeers;
    struct dt_shm_peer *peers;
    struct pollfd *polls;
    int32_t *peer_of; /* index into peers by rank, or -1 */
    struct dt_unexpected_pool pool;
    struct dt_shared_board *boards[DT_INBOX_BOARDS]; /* by id */
    /* Threads that work on boards read failed, and write the others: the rank
     * plus 1 whose memory holds what cannot be, or cannot be mapped. */
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

/* ---- board.c ---- */

extern const struct dt_board_ops dt_shm_boards;

/* Does a board of this rank wait for a piece, or for room, of that rank? */
bool dt_shm_boards_need(struct dt_shm *shm, size_t rank);

#endif
