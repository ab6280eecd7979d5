/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.h - the state of the UCX transport, for its own files: ucx.c (messages
 * and life), connection.c, put.c (long messages over RDMA), memory.c
 * (registration), request.c (pending messages, failure), context.c (UCX's own
 * settings). Each calls only those that are listed after it.
 *
 * UCX delivers whatever reaches its worker, and matches by tag alone. So a tag
 * on the wire is a keyed hash of the sender's rank and the caller's tag, by the
 * key of the two ranks: the message of a stranger matches no receive. Only the
 * notice bit and HEAD, which take no part in matching, can be read in it. */
#ifndef DT_TL_UCX_UCX_H
#define DT_TL_UCX_UCX_H

#include <ucp/api/ucp.h>

#include "tl/tl.h"

/* Kinds of put.c, added to the caller's tag. HEAD only marks a message;
 * messages with one of the others match only each other. */
#define DT_UCX_HEAD   ((uint64_t)1 << 61)
#define DT_UCX_TICKET ((uint64_t)1 << 40)
#define DT_UCX_DONE   ((uint64_t)1 << 41)
#define DT_UCX_MATCH  (~(DT_TAG_NOTICE | DT_UCX_HEAD))

/* From this length on messages are put, where both ends have RDMA. */
#define DT_UCX_LONG ((size_t)64 << 10)

/* A control message between two transports; doc/wire.md has its format. */
enum dt_ucx_control_kind {
    DT_UCX_HELLO = 1,    /* I have connected: notify me if you fail */
    DT_UCX_REVOKE = 2,   /* my transport has failed */
    DT_UCX_SHUTDOWN = 3, /* I expect nothing more from you */
    DT_UCX_READY = 4,    /* each of us has received the other's HELLO */
};
#define DT_UCX_CONTROL_KINDS 5

struct dt_ucx_control {
    uint32_t kind, from;
    uint64_t by;      /* REVOKE: the rank that failed first; HELLO: 1 if the
                       * network of the sender is RDMA */
    uint64_t missing; /* REVOKE: the rank that it misses + 1, or 0 */
    uint64_t proof;   /* a word of the ranks' key for what is above */
};

struct dt_ucx;

struct dt_ucx_peer {
    struct dt_ucx *ucx;
    struct dt_tl_peer card; /* without its secret */
    struct dt_secret key;   /* its and ours */
    ucp_tag_t control_tag;  /* where it receives control messages */
    ucp_ep_h ep;
    struct dt_ucx_peer *next; /* of those that are connecting */
    size_t pending;           /* requests that need it */
    bool connecting;
    bool known_to_it; /* a control message of it has arrived */
    bool puts;        /* both ends have RDMA; set before ready */
    bool ready_sent;
    bool agreed; /* READY was acknowledged, or has arrived */
    bool ready;  /* messages may be sent */
    bool shutdown, shutdown_sent;
    bool revoked, revoke_sent;
    bool dead;
    struct dt_ucx_control out[DT_UCX_CONTROL_KINDS]; /* sent to it */
};

/* UCX reserves it in front of each of its requests. */
struct dt_ucx_slot {
    bool orphan; /* the caller's request has failed already */
};

/* What a peer needs to put data into memory, as UCX packs it. */
struct dt_ucx_key {
    uint64_t len; /* 0: it cannot */
    char rkey[224];
};

struct dt_ucx_memory;
struct dt_ucx_put;

struct dt_ucx {
    struct dt_tl tl;
    size_t rank, size;
    struct dt_secret secret; /* this rank's */
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *addr;
    char *card; /* a copy of it, and a byte: does this rank take GPU memory? */
    size_t card_len;
    struct dt_ucx_peer *peers;
    char *cards;                      /* the memory of the peers' cards */
    struct dt_tl_req *pending, *last; /* a doubly linked list, oldest first */
    struct dt_ucx_peer *connecting;
    struct dt_ucx_memory *memories;
    struct dt_ucx_put *puts, *idle; /* all, and those not in use */
    uint64_t tickets;               /* issued so far */
    struct dt_ucx_control in;
    void *listening;     /* the receive of control messages */
    size_t controls_out; /* control messages that are being sent */
    size_t closes;       /* flushes and closes of endpoints under way */
    size_t drops;        /* receives of unexpected messages under way */
    size_t strangers;    /* messages that nobody here could believe or expect */
    bool rdma;           /* the network moves data without the processor */
    bool gpu;            /* messages may be in GPU memory */
    bool watching;       /* UCX reports deaths, at least of some peers */
    bool deaths;         /* some peer is dead */
    bool doomed;         /* it fails as soon as no callback is active */
    bool failed;
    size_t by, missing; /* why it is doomed, as in a control message */
    struct dt_error err;
};

static inline size_t dt_ucx_rank_of(const struct dt_ucx_peer *peer)
{
    return (size_t)(peer - peer->ucx->peers);
}

/* The tag on the wire of a message that this rank sends to, or receives from, a
 * peer. */
static inline ucp_tag_t dt_ucx_tag(const struct dt_ucx_peer *peer, bool send,
                                   uint64_t tag)
{
    const uint64_t hashed[2] = {send ? peer->ucx->rank : dt_ucx_rank_of(peer),
                                tag & DT_UCX_MATCH};
    return (dt_secret_word(&peer->key, hashed, sizeof(hashed)) & DT_UCX_MATCH) |
           (tag & ~DT_UCX_MATCH);
}

/* A receive is complete: its tag gets the notice bit of what was sent. */
static inline void dt_ucx_take_notice(struct dt_tl_req *req,
                                      const ucp_tag_recv_info_t *info)
{
    req->tag = (req->tag & ~DT_TAG_NOTICE) | (info->sender_tag & DT_TAG_NOTICE);
}

/* Where the rank with this secret receives control messages. */
static inline ucp_tag_t dt_ucx_control_tag(const struct dt_secret *secret)
{
    static const char purpose[] = "dt-ucx control messages";
    return dt_secret_word(secret, purpose, sizeof(purpose)) & DT_UCX_MATCH;
}

/* Is this message put? Both ends give the same answer. UCX itself moves GPU
 * memory, as it knows how each network reaches it. */
static inline bool dt_ucx_puts(const struct dt_ucx *ucx,
                               const struct dt_tl_req *req)
{
    return ucx->peers[req->peer].puts && req->len >= DT_UCX_LONG &&
           req->memory == DT_TL_HOST;
}

/* ---- connection.c ---- */

/* Receive control messages, and do what those that have come ask for. */
void dt_ucx_listen(struct dt_ucx *ucx);

/* Begin to connect to peer, unless that was done; false: it is dead. */
bool dt_ucx_connect(struct dt_ucx_peer *peer);

/* Go on with the connections that are being made; not from a callback of UCX.
 * True: some have become ready. */
bool dt_ucx_advance_connections(struct dt_ucx *ucx);

/* Close in good order: exchange SHUTDOWN with all connected peers, drop
 * unexpected messages, close; true: all peers did the same in time. */
bool dt_ucx_shut_down(struct dt_ucx *ucx);

/* Close after a failure: send REVOKE to all ranks that know this one. */
void dt_ucx_abort(struct dt_ucx *ucx);

/* ---- put.c ---- */

/* Start a request for which dt_ucx_puts() is true and whose peer is ready.
 * Until it completes, its handle is not NULL, and not a request of UCX. */
void dt_ucx_put_send(struct dt_ucx *ucx, struct dt_tl_req *req);
void dt_ucx_put_recv(struct dt_ucx *ucx, struct dt_tl_req *req);

/* Cancel all receives; closing the endpoints ends what is being sent. */
void dt_ucx_put_cancel(struct dt_ucx *ucx);

/* Free all, when the worker is never progressed again. */
void dt_ucx_put_stop(struct dt_ucx *ucx);

/* ---- memory.c ---- */

dt_result_t dt_ucx_mem_register(struct dt_tl *tl, void *ptr, size_t size,
                                void **handle, struct dt_error *err);
void dt_ucx_mem_deregister(struct dt_tl *tl, void *handle);

/* The registration that contains all of buf, or NULL. */
ucp_mem_h dt_ucx_mem_find(const struct dt_ucx *ucx, const void *buf,
                          size_t len);

/* The key of buf. If buf is not in a registration, a new one is made for it and
 * returned for the caller to unmap; else NULL. */
ucp_mem_h dt_ucx_mem_key(struct dt_ucx *ucx, void *buf, size_t len,
                         struct dt_ucx_key *key);

/* ---- request.c ---- */

/* The transport fails at its next progress; the first reason counts. */
void dt_ucx_doom(struct dt_ucx *ucx, size_t by, size_t missing, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));

/* The same, because UCX failed this request of a peer; not if status is OK. */
void dt_ucx_doom_by_status(struct dt_ucx *ucx, const struct dt_tl_req *req,
                           ucs_status_t status);

/* The same, because the peer's message has another length. */
void dt_ucx_doom_by_length(struct dt_ucx *ucx, const struct dt_tl_req *req);

/* The list of pending requests. */
void dt_ucx_request_add(struct dt_ucx *ucx, struct dt_tl_req *req);
void dt_ucx_request_remove(struct dt_ucx *ucx, struct dt_tl_req *req);

/* A pending request has ended. */
void dt_ucx_request_complete(struct dt_ucx *ucx, struct dt_tl_req *req,
                             ucs_status_t status);

/* ---- context.c ---- */

/* Start UCX: context, worker and address; no worker: this node has no network
 * for it. gpu_memory: may messages be in it? 0: no; 1: wherever UCX can; -1:
 * only where the network can by RDMA. On an error, dt_ucx_stop frees what was
 * started. */
dt_result_t dt_ucx_start(struct dt_ucx *ucx, long gpu_memory,
                         struct dt_error *err);
void dt_ucx_stop(struct dt_ucx *ucx);

#endif
