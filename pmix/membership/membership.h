/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* membership.h - which ranks of a job go on together, after some have ended or
 * have been replaced. Each rank that goes on asks with a card, and is answered
 * with the members and all their cards. Like the mesh that it uses it does no
 * I/O and is given the time.
 *
 * Base. The members of the last epoch that live, in that incarnation; where
 * there is none, in epoch 0 or when all of them have ended, all ranks that
 * live. Other ranks that live are newcomers.
 *
 * A decision needs a request of each rank of the base, and has those of the
 * newcomers that have come, too. Where the launcher replaces ranks it needs a
 * request of each rank that lives, and each that has ended is known not to be
 * replaced any more (dt_membership_gone), or its node is lost. There are no
 * fewer members than the minimum.
 *
 * The root of the mesh decides: the nodes send it their requests, and it
 * broadcasts the decision. The time in which one node is the root is a term; as
 * the root is the living node of lowest number, terms rise. A node that has a
 * new root sends it its epoch and its requests that have no answer yet. The
 * root decides nothing before it has the epochs of all nodes that live. The
 * highest of these holds: a node that does not have that decision yet, as it
 * comes from a former root, will get it, as broadcasts reach all nodes or none.
 * No other decision of a former root counts any more. A request ends by the
 * root only, also for its time-out: so none can be part of a decision that its
 * rank is not answered with.
 *
 * Invariants, of all nodes that live:
 *   1. Two nodes never have different decisions of one epoch.
 *   2. Each request has one answer. It is a decision if and only if the request
 *      is one of its members; but a rank that has ended has none.
 *   3. The epochs that a rank is answered with rise.
 *   4. A request waits for ranks without a request only: if those come, or end
 *      and are not replaced, it is answered. */
#ifndef DT_MEMBERSHIP_MEMBERSHIP_H
#define DT_MEMBERSHIP_MEMBERSHIP_H

#include "mesh/mesh.h"

struct dt_membership;

/* Bytes of a card, at most, and of all cards of a decision with 20 each. */
#define DT_MEMBERSHIP_CARD_MAX ((size_t)64 << 10)
#define DT_MEMBERSHIP_MAX      ((size_t)8 << 20)

struct dt_membership_config {
    size_t minimum; /* of members; 0 is 1 */
    bool replaces;  /* the launcher replaces ranks by itself */
    uint32_t what;  /* the kind of its requests: dt_mesh_ask */
    uint8_t kind;   /* the first byte of its broadcasts */
};

/* mesh and map must outlive it, but for the requests of dt_mesh_destroy. */
dt_result_t dt_membership_create(struct dt_membership **membership,
                                 struct dt_mesh *mesh, const struct dt_map *map,
                                 size_t self,
                                 const struct dt_membership_config *config,
                                 struct dt_error *err);
/* Requests without an answer fail. membership may be NULL. */
void dt_membership_destroy(struct dt_membership *membership);

/* A rank of this node asks, with a card (copied). Exactly once done is called,
 * maybe before return. SUCCESS: data is epoch u64 | count u32 | members, rising
 * (rank u32 | incarnation u32 | card blob). Else it is one line, with no NUL:
 * TIMED_OUT, after timeout ms (0: none), who did not come; PROC_FAILED: there
 * are fewer ranks than the minimum, or the rank has ended, or this node is
 * lost; INVALID_ARG: it asks already, or its card is too long; NO_MEMORY. */
void dt_membership_ask(struct dt_membership *membership, size_t rank,
                       const void *card, size_t len, int64_t timeout,
                       void (*done)(void *arg, dt_result_t rc, const void *data,
                                    size_t len),
                       void *arg);

/* A rank of this node that has ended will not be replaced. All nodes are
 * notified. */
void dt_membership_gone(struct dt_membership *membership, size_t rank);

/* Upcalls of the mesh: a rank has ended or joined; a node is lost; a request of
 * the kind what; a broadcast of that kind, without its first byte. */
void dt_membership_rank(struct dt_membership *membership, size_t rank);
void dt_membership_node_lost(struct dt_membership *membership);
void dt_membership_asked(struct dt_membership *membership, size_t from_node,
                         uint64_t ticket, const void *data, size_t len);
void dt_membership_received(struct dt_membership *membership, const void *data,
                            size_t len);

/* Time goes on, or the mesh does: call it after all other functions here and
 * after those of the mesh, before sleeping, as dt_mesh_progress. Returns the
 * latest time of the next call, INT64_MAX for never. */
int64_t dt_membership_progress(struct dt_membership *membership, int64_t now);

#endif
