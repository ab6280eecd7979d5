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
 * none can be sent back or replayed. No data is sent before. Then frames go
 * both ways, with BEAT as the heartbeat where nothing else is sent. */
#ifndef DT_MESH_LINK_H
#define DT_MESH_LINK_H

#include "mesh/handshake.h"

/* A link must be OPEN this long after it was opened. */
#define DT_LINK_HANDSHAKE_MS 10000

struct dt_link;

enum dt_link_state { DT_LINK_HANDSHAKE, DT_LINK_OPEN, DT_LINK_BROKEN };

/* fd is connected or connecting and does not block; ownership is transferred,
 * also on failure. to: the node that is dialed, or DT_NODE_ANY to accept. */
dt_result_t dt_link_open(struct dt_link **link, int fd,
                         const struct dt_identity *self, uint32_t to,
                         int64_t now, struct dt_error *err);
void dt_link_close(struct dt_link *link); /* link may be NULL */

int dt_link_fd(const struct dt_link *link);
short dt_link_events(const struct dt_link *link); /* POLLIN, POLLOUT */
enum dt_link_state dt_link_state(const struct dt_link *link);
/* The node at the other end; DT_NODE_ANY until the handshake has ended. */
uint32_t dt_link_peer(const struct dt_link *link);
const char *dt_link_why(const struct dt_link *link); /* once BROKEN: a line */
/* How it broke. SUCCESS: it ended after BYE; VERSION: the two daemons are of
 * different versions; TIMED_OUT; IN_PROGRESS: the acceptor closed the
 * connection before WELCOME without a reason, maybe as it is busy:
 * dt_link_retry;
 * PROC_FAILED: its connection broke; else it was refused or broke the protocol.
 */
dt_result_t dt_link_result(const struct dt_link *link);

/* Read, write, and check the time; never blocks (but for munged). Time in which
 * this process itself was stopped does not count against the peer. dt_link_next
 * returns what has come. Returns the latest time of the next call. */
int64_t dt_link_progress(struct dt_link *link, int64_t now);

/* The next frame that has come, owned by the caller, or NULL. Only OPEN and,
 * for what came before the end, BROKEN links have any. BEAT is not returned. */
struct dt_frame *dt_link_next(struct dt_link *link);

/* Queue the frame and write what can be written at once; takes a reference.
 * Frames wait until the link is OPEN. */
void dt_link_send(struct dt_link *link, struct dt_frame *frame);
bool dt_link_flushed(const struct dt_link *link); /* nothing left to write */
/* Send REFUSE with the reason; the link is BROKEN then. */
void dt_link_refuse(struct dt_link *link, const char *why);

/* Redial a link that never was OPEN, over another connection; queued frames
 * stay. fd as in dt_link_open. */
dt_result_t dt_link_retry(struct dt_link *link, int fd, int64_t now,
                          struct dt_error *err);

#endif
