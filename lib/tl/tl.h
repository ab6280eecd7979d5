/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tl.h - a transport: tagged messages between ranks, and, inside a node,
 * boards and memory that all its ranks can read.
 *
 * Life: open -> address (goes on this rank's card) -> connect (all cards are
 * known) -> isend, irecv, progress, check ... -> close. One thread at a time:
 * several may take turns under a lock of the caller; but revoked and the
 * functions of a board, of different boards at the same time.
 *
 * Matching. A receive takes the message of exactly that peer and tag; messages
 * of one peer with the same tag match in the order they were sent. Messages
 * may arrive before their receive is posted. The length of a message equals
 * that of its receive, or both fail with DT_ERR_PROC_FAILED.
 *
 * Failure. When a peer that a pending request needs is gone, or revoke() was
 * called here or by any peer, all pending requests of the transport complete
 * with DT_ERR_PROC_FAILED, their buffers are not touched any more, and later
 * ones fail at once.
 *
 * Boards. What the ranks of one communicator on one node show each other. Its
 * rounds are numbered 0, 1, 2 ...; in each, every rank may post one piece, and
 * the others read it where it is. Rounds may be posted in any order, but no
 * further ahead than there is room: a rank may post in round r only when all
 * have passed round r - rounds_room. A rank passes rounds, in rising order,
 * when it will not look at what is in them any more. A rank that waits for a
 * piece or for room needs its peer, as with a pending request; after a failure
 * nothing new is seen and post is always false. */
#ifndef DT_TL_TL_H
#define DT_TL_TL_H

#include "base/error.h"

/* Callers use bits 0..39 of a tag; bits 40..62 are 0 to them and belong to the
 * transport. The note bit is carried to the receiver, but takes no part in
 * matching. */
#define DT_TAG_BITS 40
#define DT_TAG_NOTE ((uint64_t)1 << 63)

/* Where the buffer of a message is. */
enum dt_tl_memory {
    DT_TL_HOST,
    DT_TL_GPU,     /* where takes_gpu says yes; at both ends, or at none */
    DT_TL_MANAGED, /* the same, of memory that moves by itself */
};

/* One message in flight. The caller owns it, zeroed before first use, and
 * leaves it in place until status is no longer DT_IN_PROGRESS. */
struct dt_tl_req {
    dt_result_t status;
    enum dt_tl_memory memory; /* the caller's, from before the start */
    uint64_t tag; /* of a completed receive: as sent, with its note bit */
    /* the transport's own */
    struct dt_tl *tl;
    struct dt_tl_req *prev, *next;
    char *buf;
    size_t len, done;
    size_t peer;
    void *handle;
    bool send;
};

struct dt_tl_config {
    size_t rank, size; /* in the world */
    int gpu_memory;    /* may messages be in it? 0: no; 1: where that can be;
                        * -1: where the network reads it by itself */
};

/* What this transport put on the card of a rank; addr NULL: that rank is not
 * reached by this transport. */
struct dt_tl_peer {
    const void *addr;
    size_t len;
};

struct dt_tl {
    const struct dt_tl_ops *ops;
    bool slow; /* its messages take so long, and a look for them so much, that
                * nobody should spin */
    /* the transport's own follows */
};

struct dt_board_config {
    uint32_t id;         /* of the communicator; free again after close */
    uint64_t serial;     /* equal on all its ranks, never used before */
    const size_t *ranks; /* of the world, those on this node; borrowed */
    size_t size, index;  /* how many, and which is me */
};

/* Bytes of a piece, at most, on a board of so many ranks: all ranks of a job
 * know it, of any node. */
static inline size_t dt_piece_max(size_t ranks)
{
    return (size_t)(ranks <= 4 ? 128 : ranks <= 8 ? 64 : 32) << 10;
}

struct dt_board {
    struct dt_tl *tl;
    size_t size, index;
    size_t piece_max;     /* dt_piece_max(size) */
    uint64_t rounds_room; /* rounds that can be open at once, at least 8 */
    /* the transport's own follows */
};

/* What to show: len bytes at data, of which the hole need not be copied, as
 * nobody looks there. */
struct dt_piece {
    const void *data;
    size_t len;
    size_t hole, hole_len;
    bool note; /* carried along */
};

/* What is shown. */
struct dt_view {
    const void *data; /* until this rank passes the round */
    size_t len;
    bool note;
};

struct dt_tl_ops {
    size_t size; /* of this struct, as the implementer knew it */
    const char *name;

    /* Make one; nothing is sent yet. Errors: SYSTEM, NO_MEMORY. */
    dt_result_t (*open)(const struct dt_tl_config *config, struct dt_tl **tl,
                        struct dt_error *err);

    /* This rank's address: len bytes, owned by the transport, valid until
     * close. */
    void (*address)(struct dt_tl *tl, const void **addr, size_t *len);

    /* Learn the addresses of all config.size ranks (copied; the own entry is
     * NULL). May be lazy. Errors: SYSTEM, VERSION, NO_MEMORY. */
    dt_result_t (*connect)(struct dt_tl *tl, const struct dt_tl_peer *peers,
                           struct dt_error *err);

    /* Can messages with this peer be in memory of GPUs? Both know it alike,
     * from connect on. While such a one is under way, the context of its GPU
     * is the thread's current one in isend, irecv and progress. */
    bool (*takes_gpu)(struct dt_tl *tl, size_t peer);

    /* Start a message of len > 0 bytes. Never blocks; req->status tells when
     * it is complete, which may be at once. A send is complete when buf may
     * be used again; however short it is, it may wait until the peer has
     * called progress once. */
    void (*isend)(struct dt_tl *tl, size_t peer, uint64_t tag, const void *buf,
                  size_t len, struct dt_tl_req *req);
    void (*irecv)(struct dt_tl *tl, size_t peer, uint64_t tag, void *buf,
                  size_t len, struct dt_tl_req *req);

    /* Move what can be moved without waiting; true if anything moved. */
    bool (*progress)(struct dt_tl *tl);

    /* Look for dead peers of pending requests (costs system calls: call it
     * now and then while waiting). PROC_FAILED names the rank in err; also
     * the answer for ever after a failure or revocation. A peer that is
     * silent but not known to be dead is the caller's to time out. */
    dt_result_t (*check)(struct dt_tl *tl, struct dt_error *err);

    /* Has it failed, or has a peer told it to? A few loads: to be asked after
     * memory of another rank was read in place, since one that gives up may
     * use it again as soon as it has told the others. */
    bool (*revoked)(struct dt_tl *tl);

    /* Fail everything pending, here and at the connected peers. Takes a few
     * seconds at most when peers do not answer. */
    void (*revoke)(struct dt_tl *tl);

    /* Sleep until something may have come for this rank, at most us
     * microseconds. A transport that cannot tell sleeps for all of it. */
    void (*nap)(struct dt_tl *tl, unsigned us);

    /* Make the board of a communicator; local, no message is sent. Errors:
     * SYSTEM, NO_MEMORY; UNSUPPORTED where the transport has no boards. */
    dt_result_t (*board_open)(struct dt_tl *tl,
                              const struct dt_board_config *config,
                              struct dt_board **board, struct dt_error *err);

    /* When all its ranks are through with it, or after a failure. NULL is
     * fine. */
    void (*board_close)(struct dt_board *board);

    /* Show a piece; false: no room yet. *in_place: it is in memory of
     * mem_alloc and is read there, so data must stay as it is until all have
     * passed the round; else it was copied. */
    bool (*post)(struct dt_board *board, uint64_t round,
                 const struct dt_piece *piece, bool *in_place);

    /* See the piece of a rank (index in the node) in a round; false: it is
     * not there yet. One's own may be looked at, too. */
    bool (*peek)(struct dt_board *board, size_t index, uint64_t round,
                 struct dt_view *view);

    /* This rank is through with all rounds below this one. */
    void (*pass)(struct dt_board *board, uint64_t round);

    /* Are all ranks through with all rounds below this one? */
    bool (*passed)(struct dt_board *board, uint64_t round);

    /* Zeroed memory, aligned to a page, that boards show in place. Errors:
     * SYSTEM, NO_MEMORY, UNSUPPORTED; free: INVALID_ARG if it is not of
     * mem_alloc. What is not freed goes with close. */
    dt_result_t (*mem_alloc)(struct dt_tl *tl, size_t size, void **ptr,
                             struct dt_error *err);
    dt_result_t (*mem_free)(struct dt_tl *tl, void *ptr, struct dt_error *err);

    /* Pin memory for this transport; nothing happens where none is needed. What
     * is not deregistered goes with close. Errors: SYSTEM, NO_MEMORY;
     * INVALID_ARG when some of it is registered already. */
    dt_result_t (*mem_register)(struct dt_tl *tl, void *ptr, size_t size,
                                void **handle, struct dt_error *err);
    void (*mem_deregister)(struct dt_tl *tl, void *handle);

    /* Give everything back. After a barrier of all ranks, or after a failure;
     * what was sent before a barrier is delivered. With requests pending it
     * revokes first. Bounded as revoke is, but for peers that neither close
     * nor die: 20 s. NULL is fine. */
    void (*close)(struct dt_tl *tl);
};

extern const struct dt_tl_ops dt_tl_shm; /* ranks of one node */
extern const struct dt_tl_ops dt_tl_ucx; /* any ranks */

/* For a transport that knows no GPUs, and has no boards, no memory of its own
 * and nothing to pin. */
bool dt_tl_no_takes_gpu(struct dt_tl *tl, size_t peer);
void dt_tl_no_nap(struct dt_tl *tl, unsigned us);
dt_result_t dt_tl_no_board_open(struct dt_tl *tl,
                                const struct dt_board_config *config,
                                struct dt_board **board, struct dt_error *err);
void dt_tl_no_board_close(struct dt_board *board);
bool dt_tl_no_post(struct dt_board *board, uint64_t round,
                   const struct dt_piece *piece, bool *in_place);
bool dt_tl_no_peek(struct dt_board *board, size_t index, uint64_t round,
                   struct dt_view *view);
void dt_tl_no_pass(struct dt_board *board, uint64_t round);
bool dt_tl_no_passed(struct dt_board *board, uint64_t round);
dt_result_t dt_tl_no_mem_alloc(struct dt_tl *tl, size_t size, void **ptr,
                               struct dt_error *err);
dt_result_t dt_tl_no_mem_free(struct dt_tl *tl, void *ptr,
                              struct dt_error *err);
dt_result_t dt_tl_no_mem_register(struct dt_tl *tl, void *ptr, size_t size,
                                  void **handle, struct dt_error *err);
void dt_tl_no_mem_deregister(struct dt_tl *tl, void *handle);

#endif
