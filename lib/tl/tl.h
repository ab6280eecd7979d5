/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tl.h - a transport: tagged messages between ranks.
 *
 * Life: open -> address (goes on this rank's card) -> connect (all cards are
 * known) -> isend, irecv, progress, check ... -> close. One thread at a time.
 *
 * Matching. A receive takes the message of exactly that peer and tag; messages
 * of one peer with the same tag match in the order they were sent. Messages
 * may arrive before their receive is posted. The length of a message equals
 * that of its receive, or both fail with DT_ERR_PROC_FAILED.
 *
 * Failure. When a peer that a pending request needs is gone, or revoke() was
 * called here or by any peer, all pending requests of the transport complete
 * with DT_ERR_PROC_FAILED, their buffers are not touched any more, and later
 * ones fail at once. */
#ifndef DT_TL_TL_H
#define DT_TL_TL_H

#include "base/error.h"

/* Callers use bits 0..39 of a tag; bits 40..62 are 0 to them and belong to the
 * transport. The note bit is carried to the receiver, but takes no part in
 * matching. */
#define DT_TAG_BITS 40
#define DT_TAG_NOTE ((uint64_t)1 << 63)

/* One message in flight. The caller owns it, zeroed before first use, and
 * leaves it in place until status is no longer DT_IN_PROGRESS. */
struct dt_tl_req {
    dt_result_t status;
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
};

/* What this transport put on the card of a rank; addr NULL: that rank is not
 * reached by this transport. */
struct dt_tl_peer {
    const void *addr;
    size_t len;
};

struct dt_tl {
    const struct dt_tl_ops *ops;
    /* the transport's own follows */
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

    /* Start a message of len > 0 bytes. Never blocks; req->status tells when
     * it is complete, which may be at once. A send is complete when buf may
     * be used again. */
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

    /* Fail everything pending, here and at the connected peers. Takes a few
     * seconds at most when peers do not answer. */
    void (*revoke)(struct dt_tl *tl);

    /* Give everything back. After a barrier of all ranks, or after a failure;
     * what was sent before a barrier is delivered. With requests pending it
     * revokes first. Bounded as revoke is, but for peers that neither close
     * nor die: 20 s. NULL is fine. */
    void (*close)(struct dt_tl *tl);
};

extern const struct dt_tl_ops dt_tl_shm; /* ranks of one node */
extern const struct dt_tl_ops dt_tl_ucx; /* any ranks */

#endif
