/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* handshake.h - the handshake of a link (drawn in link.h): takes the frames
 * that come and makes those to send. Its only I/O is munge's.
 */
#ifndef DT_MESH_HANDSHAKE_H
#define DT_MESH_HANDSHAKE_H

#include "mesh/address.h"
#include "mesh/wire.h"

/* A daemon. Both ends of a link have the same but for node. */
struct dt_identity {
    uint32_t job, step;
    uint32_t node;     /* or DT_NODE_RENDEZVOUS */
    uint32_t nodes;    /* of the step */
    const char *pmix;  /* PMIx's version, at most 31 bytes */
    const char *munge; /* munged's socket, NULL: the default */
    int64_t heartbeat; /* ms without a byte after which a link is broken */
};
#define DT_NODE_RENDEZVOUS UINT32_MAX       /* the rendezvous */
#define DT_NODE_ANY        (UINT32_MAX - 1) /* not known yet */

#define DT_HANDSHAKE_NONCE 16

/* Longest frame of a handshake. */
#define DT_HANDSHAKE_MAX 4096

struct dt_handshake {
    struct dt_identity self;
    bool dialer, done;
    uint32_t peer;             /* proved once done */
    enum dt_wire_kind expects; /* the only kind that may come now */
    /* The acceptor's address and port as this end of the connection has them,
     * before the first frame is taken; "" where there are none. The credentials
     * contain them, so that a process in between cannot forward these. */
    char acceptor[DT_ADDRESS_TEXT + 8];
    unsigned char dialer_nonce[DT_HANDSHAKE_NONCE];
    unsigned char acceptor_nonce[DT_HANDSHAKE_NONCE];
};

/* to: as dt_link_open has it. *hello is the frame to send, NULL for the
 * acceptor. */
dt_result_t dt_handshake_begin(struct dt_handshake *handshake,
                               const struct dt_identity *self, uint32_t to,
                               struct dt_frame **hello, struct dt_error *err);

/* A frame has come, not REFUSE. *reply is what to send, or NULL, whatever the
 * result: with an error, which ends the link, it is a REFUSE with no more
 * than an unauthenticated peer may know. VERSION, INVALID_ARG (not the peer
 * that it should be), CORRUPT (no handshake), SYSTEM (munge), NO_MEMORY. */
dt_result_t dt_handshake_take(struct dt_handshake *handshake,
                              const struct dt_frame *frame,
                              struct dt_frame **reply, struct dt_error *err);

/* REFUSE, whose body every version has the same: u8, 1 if it is for the version
 * and 0 else; and the text. NULL without memory. */
struct dt_frame *dt_handshake_refusal(bool version, const char *why);
/* The text of such a frame, made printable: VERSION or INVALID_ARG. */
dt_result_t dt_handshake_refused(const struct dt_frame *refusal,
                                 struct dt_error *err);

#endif
