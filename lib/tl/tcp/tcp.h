/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tcp.h - the state of the TCP transport, for its own files: tcp.c (messages,
 * failure and life), connection.c (dialing, accepting, and the handshake by
 * which two ranks know each other), stream.c (frames on an open connection).
 * doc/wire.md draws what is sent. */
#ifndef DT_TL_TCP_TCP_H
#define DT_TL_TCP_TCP_H

#include "tl/matching.h"
#include "tl/secret.h"
#include "tl/tcp/address.h"
#include "tl/tcp/stranger.h"

/* What epoll reports on. */
enum dt_tcp_kind { DT_TCP_LISTENER, DT_TCP_GUEST, DT_TCP_PEER };
struct dt_tcp_socket {
    enum dt_tcp_kind kind;
    int fd; /* -1: none */
};

/* ---- handshake ---- */

#define DT_TCP_NONCE 32

/* CHALLENGE, from the acceptor. */
struct dt_tcp_challenge {
    char magic[8];
    unsigned char nonce[DT_TCP_NONCE];
};

/* PROOF, from the dialer. */
struct dt_tcp_proof {
    char magic[8];
    uint32_t from, to; /* ranks, little-endian */
    unsigned char nonce[DT_TCP_NONCE];
    struct dt_secret proof;
};

/* WELCOME, from the acceptor; it proves who it is, too. */
struct dt_tcp_welcome {
    uint64_t status; /* DT_TCP_WELCOME or DT_TCP_CROSSED, little-endian */
    struct dt_secret proof;
};
#define DT_TCP_WELCOME 0
#define DT_TCP_CROSSED 1 /* the acceptor is dialing, too: that one counts */

struct dt_tcp_handshake {
    size_t got;             /* bytes of the message that is awaited */
    bool connected, proved; /* of the dialer */
    struct dt_tcp_challenge challenge;
    struct dt_tcp_proof proof;
    struct dt_tcp_welcome welcome;
};

/* A connection that has not proved anything yet. */
struct dt_tcp_guest {
    struct dt_tcp_socket socket; /* first */
    struct dt_tcp_guest *next;   /* a younger one */
    uint8_t ip[16];
    int64_t until; /* it is closed then */
    bool over;     /* to be freed */
    struct dt_tcp_handshake handshake;
};

/* ---- frames ---- */

/* Bytes of a message in one frame, at most: REVOKE waits for the end of the
 * frame that is being sent. */
#define DT_TCP_FRAME ((size_t)256 << 10)

/* Kinds of frames, in bits 40 and 41 of the tag. */
enum dt_tcp_frame {
    DT_TCP_MESSAGE,  /* the beginning of a message */
    DT_TCP_MORE,     /* more of it */
    DT_TCP_REVOKE,   /* the sender has failed; total: the rank that was the
                      * first to, len: the rank that it misses + 1, or 0 */
    DT_TCP_SHUTDOWN, /* the sender expects nothing more */
};

/* In front of each frame, little-endian. */
struct dt_tcp_header {
    uint64_t word;  /* of the connection's key, over the frame's number and
                     * what follows */
    uint64_t tag;   /* of the message, and the kind */
    uint64_t total; /* bytes of the message */
    uint64_t len;   /* bytes of it in this frame */
};

struct dt_tcp_out {
    struct dt_secret key;
    uint64_t frames; /* begun so far */
    struct dt_tcp_header header;
    size_t header_left, body_left; /* of the frame that is being sent */
    bool padded; /* its message has failed: zeros are sent for the rest */
    bool more;   /* the first message in the queue has begun */
    bool revoke, revoked, shutdown, shut_down; /* to be sent; was sent */
};

struct dt_tcp_in {
    struct dt_secret key;
    uint64_t frames;
    struct dt_tcp_header header;
    size_t header_got;
    size_t body_left, message_left; /* of this frame; of its message */
    bool revoked, shut_down;        /* has come */
};

/* ---- peers ---- */

enum dt_tcp_state {
    DT_TCP_IDLE,    /* never needed so far */
    DT_TCP_DIALING, /* connecting to it, or in the handshake */
    DT_TCP_PAUSING, /* until the next attempt, or until it connects */
    DT_TCP_OPEN,
    DT_TCP_GONE,
};

struct dt_tcp_peer {
    struct dt_tcp_socket socket; /* first */
    enum dt_tcp_state state;
    struct dt_tcp *tcp;
    struct dt_secret key;       /* of this rank and that one */
    struct dt_tcp_addresses to; /* n is 0 for ranks that this does not serve */
    struct dt_tcp_peer *next;   /* of those that are dialing or pausing */
    bool listed;                /* is in that list */
    size_t address;             /* of to, which is being tried */
    unsigned tries;
    int64_t until; /* DIALING: connected by then; PAUSING: to dial again */
    struct dt_tcp_handshake handshake;
    uint32_t watched; /* events of epoll */
    struct dt_tl_queue sends;
    struct dt_inbound inbound;
    struct dt_tcp_out out;
    struct dt_tcp_in in;
};

struct dt_tcp {
    struct dt_tl tl;
    size_t rank, size;
    struct dt_secret secret; /* forgotten once connected */
    int epoll;
    struct dt_tcp_socket listener;
    struct dt_tcp_addresses own;
    struct dt_tcp_peer *peers;
    struct dt_tcp_peer *connecting;
    struct dt_tcp_guest *guests; /* oldest first */
    size_t nguests;
    struct dt_strangers strangers;
    struct dt_unexpected_pool pool;
    char *buffer; /* for what is read of frames */
    bool deaths;  /* some peer is gone */
    bool closing; /* messages without a receive are dropped */
    _Atomic bool doomed, failed;
    size_t by, missing; /* why, as in REVOKE */
    struct dt_error err;
};

static inline size_t dt_tcp_rank_of(const struct dt_tcp_peer *peer)
{
    return (size_t)(peer - peer->tcp->peers);
}

static inline bool dt_tcp_needs(const struct dt_tcp_peer *peer)
{
    return peer->sends.first || peer->inbound.posted.first ||
           peer->inbound.receiving;
}

/* The transport fails when its progress ends; the first reason counts. */
void dt_tcp_doom(struct dt_tcp *tcp, size_t by, size_t missing, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));

/* The connection to a peer has ended, or cannot be made. */
void dt_tcp_gone(struct dt_tcp_peer *peer);

/* ---- connection.c ---- */

/* Milliseconds of the monotonic clock. */
int64_t dt_tcp_now(void);

/* Listen on a port that the kernel chooses. SYSTEM. */
dt_result_t dt_tcp_listen(struct dt_tcp *tcp, uint16_t *port,
                          struct dt_error *err);
void dt_tcp_stop_listening(struct dt_tcp *tcp); /* and close the guests */

/* Begin to connect to peer, unless that was done. */
void dt_tcp_connect(struct dt_tcp_peer *peer);

/* The socket is ready: accept, or go on with a handshake. */
void dt_tcp_accept(struct dt_tcp *tcp);
void dt_tcp_guest_ready(struct dt_tcp *tcp, struct dt_tcp_guest *guest);
void dt_tcp_dial_ready(struct dt_tcp_peer *peer);

/* Do what is due by the clock, and free guests that are over. */
void dt_tcp_tick(struct dt_tcp *tcp);

/* ---- stream.c ---- */

/* Write what the socket takes; true: some bytes. */
bool dt_tcp_flush(struct dt_tcp_peer *peer);
/* Is there nothing left to write? */
bool dt_tcp_flushed(const struct dt_tcp_peer *peer);

/* Read what has come; true: some bytes. */
bool dt_tcp_receive(struct dt_tcp_peer *peer);

/* Have epoll report what this peer is ready for, of what is wanted now. */
void dt_tcp_watch(struct dt_tcp_peer *peer);

#endif
