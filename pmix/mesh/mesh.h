/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mesh.h - what the daemons of a step do together: collectives among nodes,
 * questions, and news that reach everybody. One struct dt_mesh per node. Pure:
 * it sends and tells by callbacks and is told the time, so that thousands of
 * them run in one process under test.
 *
 * Nodes. The daemons form a tree (map.h) over which news are flooded. A node
 * whose connection broke or whose heart stopped is lost for ever, to all: its
 * children go to the nearest living ancestor, or where there is none to the
 * living node of lowest number, which is then the root, and send it what news
 * they have. A node that has ended as it should has left: the same, but its
 * ranks are not reported, as they have been.
 *
 * Ranks. A rank is alive or has ended; it may come back under its number, in
 * its next incarnation. Every collective that names a rank that has ended
 * fails, on every node by itself, as soon as the news are there.
 *
 * Collectives. Named by kind, name and ranks, and counted: the nodes that have
 * such ranks combine their parts over a tree of just these nodes, so that
 * others can be lost without harm. A message says in which incarnation of its
 * ranks it was sent; older ones are dropped, newer ones wait.
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
    DT_END_LOST,    /* it left the PMIx server without a word; code 0 */
    DT_END_STOPPED, /* it stood still for too long; code 0 */
    DT_END_NODE,    /* its node was lost; code 0 */
};

struct dt_mesh_rank {
    uint32_t incarnation;  /* 0 for the first life */
    bool ended, finalized; /* finalized: it ended after PMIx_Finalize */
    enum dt_mesh_end how;
    int code;
};

struct dt_mesh_host {
    void *arg;
    /* Queue frame for node (keep it with dt_frame_ref). Must not call back.
     * Trouble is told later, by dt_mesh_node_lost. */
    void (*send)(void *arg, size_t node, struct dt_frame *frame);
    /* News, once on every node, also on the one that they come from. */
    void (*ended)(void *arg, size_t rank, const struct dt_mesh_rank *state);
    void (*joined)(void *arg, size_t rank, uint32_t incarnation);
    void (*broadcast)(void *arg, size_t from_node, const void *data,
                      size_t len);
    void (*node_lost)(void *arg, size_t node, const char *why);
    /* This node was declared lost by others: nothing works any more. */
    void (*declared_lost)(void *arg, const char *why);
    /* A question from a node, or this one: to be answered, now or later, by
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

/* ---- what is told to the mesh ---- */

/* A frame from a node. CORRUPT: it breaks the rules, with the reason, or
 * NO_MEMORY: the caller drops the link, which loses the node. */
dt_result_t dt_mesh_receive(struct dt_mesh *mesh, size_t from,
                            const struct dt_frame *frame, struct dt_error *err);
void dt_mesh_node_lost(struct dt_mesh *mesh, size_t node, const char *why);
/* It said BYE. */
void dt_mesh_node_left(struct dt_mesh *mesh, size_t node);
/* Time goes on; operations whose time is over fail. Returns when to call it
 * again at the latest, INT64_MAX for never. Call it after all else here, before
 * sleeping: only then the limits of what was started begin to run. */
int64_t dt_mesh_progress(struct dt_mesh *mesh, int64_t now);

/* ---- news, of ranks of this node ---- */

/* A rank's life is over, the one of state's incarnation. Ignored if the mesh
 * knows it has ended, or knows no such life. */
void dt_mesh_rank_ended(struct dt_mesh *mesh, size_t rank,
                        const struct dt_mesh_rank *state);
/* A rank that had ended is back, in its next incarnation. */
void dt_mesh_rank_joined(struct dt_mesh *mesh, size_t rank);
/* Anything else. Reaches every node that lives, in the order sent. INVALID_ARG:
 * more than DT_MESH_BROADCAST_MAX; PROC_FAILED: cast out; NO_MEMORY. */
dt_result_t dt_mesh_broadcast(struct dt_mesh *mesh, const void *data,
                              size_t len, struct dt_error *err);

/* ---- collectives ---- */

struct dt_collective {
    uint32_t what;         /* the caller's kind */
    const char *name;      /* "" if it has none */
    const uint32_t *ranks; /* rising, at least one of this node */
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

/* ---- questions ---- */

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

/* Where the step's common things are kept: the living node of lowest number. */
size_t dt_mesh_root(const struct dt_mesh *mesh);
bool dt_mesh_node_lives(const struct dt_mesh *mesh, size_t node);
const struct dt_mesh_rank *dt_mesh_rank(const struct dt_mesh *mesh,
                                        size_t rank);

#endif
