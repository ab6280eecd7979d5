/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mesh.h - what the daemons of a step do together: collectives among nodes,
 * requests, and events that all nodes are notified of. One struct dt_mesh per
 * node. It does no I/O: it sends by a callback and is given the time, so that
 * thousands of them run in one process under test.
 *
 * Nodes. The daemons form a tree (map.h) along which events are flooded. A node
 * whose connection broke, or from which no heartbeat comes, is lost for ever,
 * to all: its children go to the nearest living ancestor, or where there is
 * none to the living node of lowest number, which is then the root, and send it
 * the events that they have. A node that has ended normally has left: the same,
 * but the end of its ranks has been reported before.
 *
 * Ranks. A rank is alive or has ended; a replacement has its number and the
 * next incarnation. Every collective that names a rank that has ended fails, on
 * every node by itself, when the event is there.
 *
 * Collectives. Identified by kind, name and ranks, and counted: the nodes that
 * have such ranks combine their parts along a tree of just these nodes, so that
 * the loss of others does no harm. A message has the incarnations of its ranks;
 * older ones are dropped, newer ones wait.
 *
 * Upcalls may come from any function here that is not const, except
 * dt_mesh_create; none is called after dt_mesh_destroy. An upcall may call any
 * function here except dt_mesh_destroy. */
#ifndef DT_MESH_MESH_H
#define DT_MESH_MESH_H

#include "mesh/map.h"

struct dt_mesh;

/* A child that has not joined its parent so many ms after its creation is sent
 * a message, so that the host notices if it is dead. */
#define DT_MESH_JOIN_MS 10000

/* Bytes of dt_mesh_broadcast, at most. */
#define DT_MESH_BROADCAST_MAX ((size_t)1 << 20)

/* How a rank ended. */
enum dt_mesh_end {
    DT_END_EXIT,    /* code: its exit code, or 128 + the signal */
    DT_END_LOST,    /* its connection to PMIx broke; code 0 */
    DT_END_STOPPED, /* it was stopped for too long; code 0 */
    DT_END_NODE,    /* its node was lost; code 0 */
};

struct dt_mesh_rank {
    uint32_t incarnation;  /* 0 for the first process */
    bool ended, finalized; /* finalized: it ended after PMIx_Finalize */
    enum dt_mesh_end how;
    int code;
};

struct dt_mesh_host {
    void *arg;
    /* Queue frame for node (keep it with dt_frame_ref). Must not call back.
     * A failure is reported later, by dt_mesh_node_lost. */
    void (*send)(void *arg, size_t node, struct dt_frame *frame);
    /* Events, once on every node, also on the one that they come from. */
    void (*ended)(void *arg, size_t rank, const struct dt_mesh_rank *state);
    void (*joined)(void *arg, size_t rank, uint32_t incarnation);
    void (*broadcast)(void *arg, size_t from_node, const void *data,
                      size_t len);
    void (*node_lost)(void *arg, size_t node, const char *why);
    /* Other nodes have declared this one lost: every operation fails. */
    void (*declared_lost)(void *arg, const char *why);
    /* A request of a node, maybe this one: to be answered, now or later, by
     * dt_mesh_answer with this ticket. data is valid until return. */
    void (*asked)(void *arg, size_t from_node, uint64_t ticket, uint32_t what,
                  const void *data, size_t len);
};

/* map must outlive the mesh. now is in ms, of a clock that only goes forward.
 * Becomes the child of its parent at once (a JOIN is sent). */
dt_result_t dt_mesh_create(struct dt_mesh **mesh, const struct dt_map *map,
                           size_t self, const struct dt_mesh_host *host,
                           int64_t now, struct dt_error *err);
/* What is in flight fails first: done is called with PROC_FAILED. mesh may be
 * NULL. */
void dt_mesh_destroy(struct dt_mesh *mesh);

/* ---- what the host reports ---- */

/* A frame from a node. CORRUPT: it breaks the rules, with the reason, or
 * NO_MEMORY: the caller drops the link, which loses the node. */
dt_result_t dt_mesh_receive(struct dt_mesh *mesh, size_t from,
                            const struct dt_frame *frame, struct dt_error *err);
void dt_mesh_node_lost(struct dt_mesh *mesh, size_t node, const char *why);
/* It has sent BYE. */
void dt_mesh_node_left(struct dt_mesh *mesh, size_t node);
/* Time goes on; operations whose time is over fail. Returns the latest time of
 * the next call, INT64_MAX for never. Call it after all others here, before
 * sleeping: only then the time limits of new operations begin to run. */
int64_t dt_mesh_progress(struct dt_mesh *mesh, int64_t now);

/* There was no memory for data that other nodes wait for: this node, which
 * would keep them waiting, declares itself lost at the latest in
 * dt_mesh_progress. */
void dt_mesh_no_memory(struct dt_mesh *mesh);

/* ---- events of this node ---- */

/* A rank of this node, in state's incarnation, has ended. Ignored if the mesh
 * knows that already, or knows no such incarnation. */
void dt_mesh_rank_ended(struct dt_mesh *mesh, size_t rank,
                        const struct dt_mesh_rank *state);
/* A replacement of a rank that has ended runs, in the next incarnation. */
void dt_mesh_rank_joined(struct dt_mesh *mesh, size_t rank);
/* Any data. Reaches every living node, in the order sent. INVALID_ARG: more
 * than DT_MESH_BROADCAST_MAX; PROC_FAILED: this node was declared lost;
 * NO_MEMORY. */
dt_result_t dt_mesh_broadcast(struct dt_mesh *mesh, const void *data,
                              size_t len, struct dt_error *err);

/* ---- collectives ---- */

struct dt_collective {
    uint32_t what;         /* the caller's kind */
    const char *name;      /* "" if it has none */
    const uint32_t *ranks; /* in rising order, at least one of this node */
    size_t nranks;
};

/* This node's ranks among them have all come, with this data (copied). Exactly
 * once done is called, maybe before return: SUCCESS, and data is the parts of
 * all nodes, in no particular order, valid until return; PROC_FAILED: a rank
 * has ended; TIMED_OUT: after timeout ms (0: none), here or on another node;
 * NO_MEMORY: here or on another node; INVALID_ARG: what is not as above. */
void dt_mesh_collect(struct dt_mesh *mesh, const struct dt_collective *what,
                     const void *data, size_t len, int64_t timeout,
                     void (*done)(void *arg, dt_result_t rc, const void *data,
                                  size_t len),
                     void *arg);

/* ---- requests ---- */

/* Ask a node, which may be this one. Exactly once done is called, maybe before
 * return: SUCCESS and what the node answered; PROC_FAILED: the node is lost;
 * TIMED_OUT; NO_MEMORY: here or there, or the answer is too long;
 * INVALID_ARG: there is no such node. */
void dt_mesh_ask(struct dt_mesh *mesh, size_t node, uint32_t what,
                 const void *data, size_t len, int64_t timeout,
                 void (*done)(void *arg, dt_result_t rc, int32_t status,
                              const void *data, size_t len),
                 void *arg);
/* A ticket whose asker is gone is ignored. */
void dt_mesh_answer(struct dt_mesh *mesh, uint64_t ticket, int32_t status,
                    const void *data, size_t len);

/* ---- what the mesh knows ---- */

/* The living node of lowest number, which keeps what is shared by the step. */
size_t dt_mesh_root(const struct dt_mesh *mesh);
bool dt_mesh_node_lives(const struct dt_mesh *mesh, size_t node);
const struct dt_mesh_rank *dt_mesh_rank(const struct dt_mesh *mesh,
                                        size_t rank);

#endif
