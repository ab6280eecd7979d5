/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link.h - one connection between two daemons of a step, from its first byte:
 *
 *   dialer                        acceptor
 *     HELLO  version, PMIx version, job, step, from, to, nonce  -->
 *     <--  CHALLENGE  nonce, credential(acceptor, all the above, nonces)
 *     PROOF  credential(dialer, all the above, nonces)  -->
 *     <--  WELCOME               or REFUSE and a text, either way, at any time
 *
 * Each credential is munge's, of this user, and names its maker's role, so that
 * none can be sent back or used again. Nobody is told anything before. Then
 * frames go both ways, with a BEAT where there is nothing else to say. */
#ifndef DT_MESH_LINK_H
#define DT_MESH_LINK_H

#include "mesh/handshake.h"

/* A link must be OPEN this long after it was opened. */
#define DT_LINK_HANDSHAKE_MS 10000

struct dt_link;

enum dt_link_state { DT_LINK_HANDSHAKE, DT_LINK_OPEN, DT_LINK_BROKEN };

/* fd is connected or still connecting, does not block, and is the link's from
 * now on, closed also on failure. to: whom we dial, or UINT32_MAX-1
 * (DT_NODE_ANY) to accept. */
dt_result_t dt_link_open(struct dt_link **link, int fd,
                         const struct dt_identity *self, uint32_t to,
                         int64_t now, struct dt_error *err);
void dt_link_close(struct dt_link *link); /* link may be NULL */

int dt_link_fd(const struct dt_link *link);
short dt_link_events(const struct dt_link *link); /* POLLIN, POLLOUT */
enum dt_link_state dt_link_state(const struct dt_link *link);
/* Who it is; DT_NODE_ANY until he has proved it. */
uint32_t dt_link_peer(const struct dt_link *link);
const char *dt_link_why(const struct dt_link *link); /* once BROKEN: a line */
/* How it broke. SUCCESS: it ended after BYE; VERSION: the two daemons are of
 * different versions; TIMED_OUT; IN_PROGRESS: whom we dialed hung up before
 * he said anything, maybe he is busy with strangers: dt_link_retry;
 * PROC_FAILED: its connection broke; else it was refused or broke a rule. */
dt_result_t dt_link_result(const struct dt_link *link);

/* Read, write, beat, and look at the clock; never blocks (but for munged). Time
 * in which this process itself stood still does not count against the peer.
 * What has come in is then to be had from dt_link_next. Returns when to call it
 * again at the latest. */
int64_t dt_link_progress(struct dt_link *link, int64_t now);

/* The next frame that has come, the caller's, or NULL. Only OPEN and, for what
 * came before the end, BROKEN links have any. BEAT never shows. */
struct dt_frame *dt_link_next(struct dt_link *link);

/* Queue, and write as much as goes at once; takes a reference. Frames wait
 * until the link is OPEN. */
void dt_link_send(struct dt_link *link, struct dt_frame *frame);
bool dt_link_flushed(const struct dt_link *link); /* nothing left to write */
/* Say why nothing more is wanted of the other end; the link is BROKEN then. */
void dt_link_refuse(struct dt_link *link, const char *why);

/* Begin a dialed link that never was OPEN again over another connection; what
 * waits to be sent stays. fd as in dt_link_open; also on failure. */
dt_result_t dt_link_retry(struct dt_link *link, int fd, int64_t now,
                          struct dt_error *err);

#endif
