/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tl.h - the contract of a transport: tagged messages between ranks.
 *
 * Order of calls: open, address (it goes on this rank's card), connect (once
 * all cards are known), then isend, irecv, progress and check, then close. One
 * thread at a time calls a transport; several may take turns under a lock of
 * the caller. Any thread may call revoked at any time.
 *
 * Matching. A receive takes the message of exactly that peer and tag; messages
 * of one peer with the same tag match in the order in which they were sent. A
 * message may arrive before its receive is posted. The length of a message
 * must equal that of its receive, or both fail with DT_ERR_PROC_FAILED.
 *
 * Failure. When a peer that a pending request needs has ended, or when any rank
 * called revoke(), all pending requests of the transport complete with
 * DT_ERR_PROC_FAILED. The transport does not touch their buffers any more, and
 * later requests fail at once. */
#ifndef DT_TL_TL_H
#define DT_TL_TL_H

#include <sys/types.h>

#include "tl/secret.h"

/* Callers use bits 0..39 of a tag and leave bits 40..62, which belong to the
 * transport, 0. The notice bit is delivered to the receiver, but takes no part
 * in matching. */
#define DT_TAG_BITS   40
#define DT_TAG_NOTICE ((uint64_t)1 << 63)

/* Where the buffer of a message is. */
enum dt_tl_memory {
    DT_TL_HOST,
    DT_TL_GPU,     /* GPU memory, where takes_gpu is true; at both ends */
    DT_TL_MANAGED, /* the same, for memory of cudaMallocManaged */
};

/* One message. The caller owns it, zeroes it before first use, and leaves it
 * in place until status is no longer DT_IN_PROGRESS. */
struct dt_tl_req {
    dt_result_t status;
    enum dt_tl_memory memory; /* set by the caller before isend or irecv */
    uint64_t tag; /* of a completed receive: as sent, with its notice bit */
    /* private to the transport */
    struct dt_tl *tl;
    struct dt_tl_req *prev, *next;
    char *buf;
    size_t len, done;
    size_t peer;
    void *handle;
    bool send;
};

struct dt_tl_config {
    size_t size;                    /* of the world, at most */
    const struct dt_secret *secret; /* of this rank; copied */
};

/* The world, which is known once all cards are. */
struct dt_tl_world {
    size_t rank, size;
    const struct dt_tl_peer *peers; /* of all ranks */
};

/* What a rank put on its card for this transport, and its secret; addr NULL:
 * this transport does not reach that rank. */
struct dt_tl_peer {
    const void *addr;
    size_t len;
    const struct dt_secret *secret;
};

struct dt_tl {
    const struct dt_tl_ops *ops;
    const struct dt_board_ops *boards; /* board.h; NULL: not on one node */
    bool slow; /* polling it is too expensive to spin on */
    /* the transport's own fields follow */
};

struct dt_tl_ops {
    const char *name;

    /* Make a transport; no message is sent yet. NULL in *tl, with SUCCESS: this
     * node has no network for it. Errors: SYSTEM, NO_MEMORY. */
    dt_result_t (*open)(const struct dt_tl_config *config, struct dt_tl **tl,
                        struct dt_error *err);

    /* This rank's address: len bytes, owned by the transport, valid until
     * close. */
    void (*address)(struct dt_tl *tl, const void **addr, size_t *len);

    /* Learn the number of this rank and the addresses of all (copied; this
     * rank's own entry is NULL). Connections may be made later, at the first
     * message. Errors: SYSTEM, VERSION, NO_MEMORY. */
    dt_result_t (*connect)(struct dt_tl *tl, const struct dt_tl_world *world,
                           struct dt_error *err);

    /* Can messages to and from this peer be in GPU memory? Both ends give the
     * same answer, from connect on. While such a message is pending, the
     * caller makes the context of its GPU current in isend, irecv and
     * progress. NULL: no message can. */
    bool (*takes_gpu)(struct dt_tl *tl, size_t peer);

    /* The process of a connected peer; 0: it is not known. NULL: never. */
    pid_t (*process)(const struct dt_tl *tl, size_t peer);

    /* Start a message of len > 0 bytes. Never blocks; req->status shows when
     * it is complete, which may be at once. A send is complete when buf may be
     * used for something else; even a short one may not complete before the
     * peer has called progress once. */
    void (*isend)(struct dt_tl *tl, size_t peer, uint64_t tag, const void *buf,
                  size_t len, struct dt_tl_req *req);
    void (*irecv)(struct dt_tl *tl, size_t peer, uint64_t tag, void *buf,
                  size_t len, struct dt_tl_req *req);

    /* Do what can be done without waiting; true if any message moved. */
    bool (*progress)(struct dt_tl *tl);

    /* Find out whether peers of pending requests have ended. Makes system
     * calls, so a caller that waits calls it now and then. PROC_FAILED, with
     * the rank named in err, once the transport has failed or was revoked. The
     * caller needs a time-out of its own for a peer that hangs. */
    dt_result_t (*check)(struct dt_tl *tl, struct dt_error *err);

    /* Has the transport failed, or has a peer revoked it? Costs a few loads.
     * Ask after memory of another rank was read in place: a rank that gives up
     * may overwrite that memory as soon as it has revoked. */
    bool (*revoked)(struct dt_tl *tl);

    /* Fail all pending requests, here and at the connected peers. Takes a few
     * seconds at most when peers do not answer. */
    void (*revoke)(struct dt_tl *tl);

    /* Sleep until a peer may have sent, posted or released something, at most
     * us microseconds. NULL: a peer cannot wake this rank. */
    void (*sleep)(struct dt_tl *tl, unsigned us);

    /* Pin memory for the network. close releases what was not deregistered.
     * Errors: SYSTEM, NO_MEMORY; INVALID_ARG when part of it is registered
     * already. NULL: this transport pins nothing. */
    dt_result_t (*mem_register)(struct dt_tl *tl, void *ptr, size_t size,
                                void **handle, struct dt_error *err);
    void (*mem_deregister)(struct dt_tl *tl, void *handle);

    /* Free the transport, after a barrier of all ranks or after a failure. What
     * was sent before the barrier is delivered. With requests pending it
     * revokes first. Takes as long as revoke, but up to 20 s for peers that
     * neither close nor end. NULL is fine. */
    void (*close)(struct dt_tl *tl);
};

extern const struct dt_tl_ops dt_tl_shm; /* to the ranks of this node */
extern const struct dt_tl_ops dt_tl_ucx; /* to any rank, over RDMA */
extern const struct dt_tl_ops dt_tl_tcp; /* to any rank, over sockets */

#endif
