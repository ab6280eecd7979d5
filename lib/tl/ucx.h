/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.h - what the parts of the UCX transport share: ucx.c (messages),
 * ucx_note.c (what the transports tell each other), ucx_link.c (connections),
 * ucx_end.c (their end), ucx_put.c (long messages over RDMA), ucx_mem.c
 * (registered memory), ucx_setup.c (UCX itself).
 *
 * Tags on the wire: bits 0..39 and the note bit are the caller's, bits 40..60
 * the rank of the sender, as UCX matches by tag alone. The highest such rank
 * stands for the transport's own notes. Bits 61 and 62 are for ucx_put.c. */
#ifndef DT_TL_UCX_H
#define DT_TL_UCX_H

#include <ucp/api/ucp.h>

#include "tl/tl.h"

#define DT_UCX_RANK_BITS 21
#define DT_UCX_RANK_MASK                                                       \
    ((((uint64_t)1 << DT_UCX_RANK_BITS) - 1) << DT_TAG_BITS)
#define DT_UCX_MAX_RANKS (((size_t)1 << DT_UCX_RANK_BITS) - 1)
#define DT_UCX_NOTE_TAG  DT_UCX_RANK_MASK

/* HEAD is only a mark on a message; the others are a matching of their own. */
#define DT_UCX_HEAD     ((uint64_t)1 << 61)
#define DT_UCX_TICKET   ((uint64_t)1 << 62)
#define DT_UCX_DONE     (DT_UCX_TICKET | DT_UCX_HEAD)
#define DT_UCX_TAG_MASK (DT_UCX_RANK_MASK | DT_UCX_DONE)
#define DT_UCX_MATCH    (~(DT_TAG_NOTICE | DT_UCX_HEAD))

/* Messages of so many bytes are put, where they can be. */
#define DT_UCX_LONG ((size_t)64 << 10)

/* A note from one transport to another; doc/wire.md draws it. */
enum dt_ucx_note_kind {
    DT_UCX_HELLO = 1,  /* I have connected to you: tell me if you fail */
    DT_UCX_REVOKE = 2, /* it is over */
    DT_UCX_BYE = 3,    /* I expect nothing more from you */
    DT_UCX_READY = 4,  /* each of us has heard the other: send */
};
#define DT_UCX_NOTE_KINDS 5

struct dt_ucx_note {
    uint32_t kind, from;
    uint64_t by;      /* REVOKE: the rank that was the first to give up;
                       * HELLO: is its network RDMA? */
    uint64_t missing; /* REVOKE: the rank it misses + 1, or 0 */
};

struct dt_ucx;

struct dt_ucx_peer {
    struct dt_ucx *ucx;
    struct dt_tl_peer card;
    ucp_ep_h ep;
    struct dt_ucx_peer *next; /* of those whose link is being made */
    size_t pending;           /* requests that need it */
    bool linking;             /* in that list */
    bool met;                 /* it has connected to us */
    bool puts;                /* RDMA on both sides; known when ready */
    bool asked;               /* READY is on its way to it */
    bool agreed;              /* READY has arrived */
    bool ready;               /* messages may go */
    bool bye, said_bye;       /* it said so to us, we to it */
    bool over, said_over;     /* it said that it has failed, we to it */
    bool dead;
};

/* In front of each request of UCX. */
struct dt_ucx_slot {
    bool orphan; /* the caller has got its answer already */
};

/* What a peer needs to put into memory, as UCX packs it. */
struct dt_ucx_key {
    uint64_t len; /* 0: it cannot */
    char rkey[224];
};

struct dt_ucx_memory;
struct dt_ucx_put;

struct dt_ucx {
    struct dt_tl tl;
    size_t rank, size;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *addr;
    char *card; /* a copy of it, and a byte: does this rank take GPU memory? */
    size_t card_len;
    struct dt_ucx_peer *peers;
    char *cards;                      /* the bytes the peers' cards point to */
    struct dt_tl_req *pending, *last; /* a doubly linked list, oldest first */
    struct dt_ucx_peer *linking;
    struct dt_ucx_memory *memories;
    struct dt_ucx_put *puts, *idle; /* all, and those not in use */
    uint64_t tickets;               /* written so far */
    struct dt_ucx_note out[DT_UCX_NOTE_KINDS], in;
    void *listening;  /* the receive of notes */
    size_t notes_out; /* notes not yet sent */
    size_t closes;    /* flushes and closes of endpoints under way */
    size_t drops;     /* receives of unwanted messages under way */
    bool rdma;        /* the network moves the bytes by itself */
    bool gpu;         /* messages may be in memory of GPUs */
    bool watching;    /* UCX notices deaths, at least of some peers */
    bool deaths;      /* some peer is dead */
    bool doomed;      /* to fail when no callback is active */
    bool failed;
    size_t by, missing; /* why it is doomed, as in a note */
    struct dt_error err;
};

/* ---- ucx.c ---- */

/* This transport is to fail at the next progress; the first reason counts. */
void dt_ucx_doom(struct dt_ucx *ucx, size_t by, size_t missing, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));

/* ... because this request needs a peer that UCX cannot reach any more. */
void dt_ucx_lose(struct dt_ucx *ucx, const struct dt_tl_req *req,
                 ucs_status_t status);

/* ... because its peer thinks of another length. */
void dt_ucx_disagree(struct dt_ucx *ucx, const struct dt_tl_req *req);

/* A request is over. */
void dt_ucx_complete(struct dt_ucx *ucx, struct dt_tl_req *req,
                     ucs_status_t status);

/* Begin what has waited for the link to peer. */
void dt_ucx_release(struct dt_ucx_peer *peer);

/* ---- ucx_setup.c ---- */

/* Start UCX: context, worker, address; gpu_memory: may messages be in it? 0:
 * no; 1: wherever UCX can; -1: only where the network can by RDMA. What it has
 * started when it fails is in *ucx, and dt_ucx_stop gives it back. */
dt_result_t dt_ucx_start(struct dt_ucx *ucx, long gpu_memory,
                         struct dt_error *err);
void dt_ucx_stop(struct dt_ucx *ucx);

/* ---- ucx_note.c ---- */

/* Listen for notes, and heed those that have come. */
void dt_ucx_listen(struct dt_ucx *ucx);

/* Send a note over an endpoint that exists. */
void dt_ucx_tell(struct dt_ucx_peer *peer, enum dt_ucx_note_kind kind);

/* ---- ucx_link.c ---- */

/* Have a link towards peer, now or soon; false: it is dead. */
bool dt_ucx_link(struct dt_ucx_peer *peer);

/* Have an endpoint towards peer, though the link be not ready; not from a
 * callback of UCX. False: it is dead. */
bool dt_ucx_reach(struct dt_ucx_peer *peer);

/* Go on with the links being made; not from a callback of UCX. */
void dt_ucx_tend(struct dt_ucx *ucx);

/* ---- ucx_end.c ---- */

/* The end in good order: tell all that know us, wait until they have told us,
 * throw away what nobody has received, close; true: it was as it should. */
bool dt_ucx_part(struct dt_ucx *ucx);

/* The end after a failure: tell all that know us, and close at once. */
void dt_ucx_cut(struct dt_ucx *ucx);

/* ---- ucx_mem.c ---- */

dt_result_t dt_ucx_mem_register(struct dt_tl *tl, void *ptr, size_t size,
                                void **handle, struct dt_error *err);
void dt_ucx_mem_deregister(struct dt_tl *tl, void *handle);

/* The registration that holds all of buf, or NULL. */
ucp_mem_h dt_ucx_mem_find(const struct dt_ucx *ucx, const void *buf,
                          size_t len);

/* The key of buf. If it is not in a registration, it gets one of its own, for
 * the caller to unmap; else NULL. */
ucp_mem_h dt_ucx_mem_key(struct dt_ucx *ucx, void *buf, size_t len,
                         struct dt_ucx_key *key);

/* ---- ucx_put.c ---- */

/* Start a request for which dt_ucx_puts() and whose link is ready. Until it is
 * over its handle is not NULL, and not UCX's. */
void dt_ucx_put_send(struct dt_ucx *ucx, struct dt_tl_req *req);
void dt_ucx_put_recv(struct dt_ucx *ucx, struct dt_tl_req *req);

/* Wait for nothing more; what moves is the endpoints' to end. */
void dt_ucx_put_cancel(struct dt_ucx *ucx);

/* Free it all, when the worker is never progressed again. */
void dt_ucx_put_stop(struct dt_ucx *ucx);

/* Is this message put? Both sides know it alike. Memory of GPUs is left to
 * UCX, which knows how each network comes to it. */
static inline bool dt_ucx_puts(const struct dt_ucx *ucx,
                               const struct dt_tl_req *req)
{
    return ucx->peers[req->peer].puts && req->len >= DT_UCX_LONG &&
           req->memory == DT_TL_HOST;
}

static inline size_t dt_ucx_rank_of(const struct dt_ucx_peer *peer)
{
    return (size_t)(peer - peer->ucx->peers);
}

#endif
