/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.h - what ucx.c (messages) and ucx_link.c (connections) share.
 *
 * Tags on the wire: bits 0..39 and the note bit are the caller's, bits 40..62
 * the rank of the sender, as UCX matches by tag alone. The highest such rank
 * stands for the transport's own notes. */
#ifndef DT_TL_UCX_H
#define DT_TL_UCX_H

#include <ucp/api/ucp.h>

#include "tl/tl.h"

#define DT_UCX_RANK_BITS 23
#define DT_UCX_RANK_MASK                                                       \
    ((((uint64_t)1 << DT_UCX_RANK_BITS) - 1) << DT_TAG_BITS)
#define DT_UCX_MAX_RANKS (((size_t)1 << DT_UCX_RANK_BITS) - 1)
#define DT_UCX_NOTE_TAG  DT_UCX_RANK_MASK

/* A note from one transport to another. */
enum dt_ucx_note_kind {
    DT_UCX_HELLO = 1,  /* I have connected to you: tell me if you fail */
    DT_UCX_REVOKE = 2, /* it is over */
    DT_UCX_BYE = 3,    /* I expect nothing more from you */
};
#define DT_UCX_NOTE_KINDS 4

struct dt_ucx_note {
    uint32_t kind, from;
    uint64_t by;      /* REVOKE: the rank that was the first to give up */
    uint64_t missing; /* REVOKE: the rank it misses + 1, or 0 */
};

struct dt_ucx;

struct dt_ucx_peer {
    struct dt_ucx *ucx;
    struct dt_tl_peer card;
    ucp_ep_h ep;
    size_t pending;     /* requests that need it */
    bool met;           /* it is connected to us */
    bool bye, said_bye; /* it said so to us, we to it */
    bool dead;
};

struct dt_ucx {
    struct dt_tl tl;
    size_t rank, size;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *addr;
    size_t addr_len;
    struct dt_ucx_peer *peers;
    char *cards;               /* the bytes the peers' cards point to */
    struct dt_tl_req *pending; /* a doubly linked list */
    struct dt_ucx_note out[DT_UCX_NOTE_KINDS], in;
    void *listening;  /* the receive of notes */
    size_t notes_out; /* notes not yet sent */
    size_t closes;    /* closes of endpoints under way */
    size_t drops;     /* receives of unwanted messages under way */
    bool watching;    /* UCX notices deaths, at least of some peers */
    bool deaths;      /* some peer is dead */
    bool doomed;      /* to fail when no callback is active */
    bool failed;
    size_t by, missing; /* why it is doomed, as in a note */
    struct dt_error err;
};

/* This transport is to fail at the next progress; the first reason counts. */
void dt_ucx_doom(struct dt_ucx *ucx, size_t by, size_t missing, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));

/* Have an endpoint towards peer; false: it is dead. */
bool dt_ucx_link(struct dt_ucx_peer *peer);

/* Listen for notes, and heed those that have come. */
void dt_ucx_listen(struct dt_ucx *ucx);

/* The end in good order: tell all that know us, wait until they have told us,
 * throw away what nobody has received, close; true: it was as it should. */
bool dt_ucx_part(struct dt_ucx *ucx);

/* The end after a failure: tell all that know us, and close at once. */
void dt_ucx_cut(struct dt_ucx *ucx);

/* Progress until done(), at most so many seconds; true: done. */
bool dt_ucx_wait(struct dt_ucx *ucx, bool (*done)(struct dt_ucx *),
                 double seconds);

#endif
