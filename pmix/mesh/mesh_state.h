/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mesh_state.h - the state of a mesh, for its own files. */
#ifndef DT_MESH_MESH_STATE_H
#define DT_MESH_MESH_STATE_H

#include "mesh/mesh.h"
#include "mesh/table.h"

#define DT_NO_NODE ((size_t)-1)

/* Operations in flight, and known keys of collectives, at most. */
#define DT_MESH_PENDING 65536

/* An operation whose end is to be reported. It waits in a queue until no upcall
 * is on the stack, so that upcalls which start the next one do not nest. */
struct dt_ending {
    struct dt_ending *next;
    void (*report)(struct dt_ending *ending); /* frees it */
};

struct dt_limit {
    int64_t ms, end; /* end 0: it does not run yet */
};

enum dt_node_state {
    DT_NODE_LIVES,
    DT_NODE_LEAVING, /* it has sent BYE here; the others may not know */
    DT_NODE_LEFT,
    DT_NODE_LOST,
};

struct dt_members {
    uint8_t *node;     /* [nodes] enum dt_node_state */
    bool *unreachable; /* [nodes] nothing can be sent there any more */
    bool *probed_by; /* [nodes] it has sent PROBE: it wants to be our parent */
    struct dt_mesh_rank *rank; /* [ranks] */
    size_t root;               /* the living node of lowest number */
    size_t parent;             /* or DT_NO_NODE: this is the root */
    size_t *child;
    size_t nchild, room;
    int64_t look; /* when to check for nodes without a neighbour */
};

/* Events that are kept for nodes that join later. */
#define DT_NOTIFICATION_LOG       1024
#define DT_NOTIFICATION_LOG_BYTES ((size_t)16 << 20)

struct dt_notification_log {
    uint32_t *last; /* [nodes] number of the last event of each */
    struct dt_frame *frame[DT_NOTIFICATION_LOG];
    size_t first, count, bytes;
};

struct dt_mesh {
    const struct dt_map *map;
    size_t self;
    struct dt_mesh_host host;
    bool out;       /* declared lost: nothing is sent or received */
    bool no_memory; /* dt_mesh_no_memory was called */
    unsigned busy;  /* calls of ours on the stack */
    struct dt_ending *ended, **ended_end;
    int64_t now, due; /* before due no operation's time is over */
    struct dt_members members;
    struct dt_notification_log log;
    struct dt_table keys; /* of collectives */
    size_t collectives;   /* in flight, or not started here */
    uint64_t *marks;      /* a bit per node, all 0 */
    struct dt_table asks;
    void (*declare_lost)(struct dt_mesh *mesh, const char *why);
    uint64_t asked; /* the last request's number */
};

/* ---- upcall.c ---- */

/* Around everything that can make an upcall. */
void dt_mesh_enter(struct dt_mesh *mesh);
void dt_mesh_leave(struct dt_mesh *mesh);

void dt_mesh_end_later(struct dt_mesh *mesh, struct dt_ending *ending);
/* A limit begins to run at the next dt_mesh_progress, which has the time; ms 0:
 * none. */
void dt_limit_begin(struct dt_mesh *mesh, struct dt_limit *limit, int64_t ms);
bool dt_limit_over(struct dt_mesh *mesh, struct dt_limit *limit);
/* Takes a reference; nothing is sent to unreachable nodes. */
void dt_mesh_send(struct dt_mesh *mesh, size_t node, struct dt_frame *frame);

/* ---- mesh.c ---- */

/* This node is none of the step's any more: all that is in flight fails. */
void dt_mesh_declare_lost(struct dt_mesh *mesh, const char *why);
/* Is it this node's parent or child in the tree? */
bool dt_mesh_is_neighbour(const struct dt_mesh *mesh, size_t node);
/* Change the members, and make the upcall: */
/* The node is lost or has left, for all. */
void dt_mesh_apply_gone(struct dt_mesh *mesh, size_t node,
                        enum dt_node_state state, const char *why);
void dt_mesh_apply_ended(struct dt_mesh *mesh, size_t rank,
                         const struct dt_mesh_rank *state);
void dt_mesh_apply_joined(struct dt_mesh *mesh, size_t rank,
                          uint32_t incarnation);

/* ---- notification.c ---- */

dt_result_t dt_notification_open(struct dt_mesh *mesh);
void dt_notification_close(struct dt_mesh *mesh);
dt_result_t dt_notification_receive(struct dt_mesh *mesh, size_t from,
                                    const struct dt_frame *frame,
                                    struct dt_error *err);
/* From a node that is lost and does not know it. */
void dt_notification_from_lost(struct dt_mesh *mesh, size_t from,
                               const struct dt_frame *frame);
void dt_notification_node(struct dt_mesh *mesh, size_t node,
                          enum dt_node_state state, const char *why);
/* Send all events of the log to a node that may lack some. */
void dt_notification_replay(struct dt_mesh *mesh, size_t node);
/* To a node that should have joined this one: if it is dead, the host notices.
 */
void dt_notification_probe(struct dt_mesh *mesh, size_t node);
/* To a node that is lost and does not know it. */
void dt_notification_refuse(struct dt_mesh *mesh, size_t node);

/* ---- collect.c ---- */

dt_result_t dt_collect_receive(struct dt_mesh *mesh, size_t from,
                               const struct dt_frame *frame,
                               struct dt_error *err);
/* The state of a rank has changed from this one. */
void dt_collect_rank(struct dt_mesh *mesh, size_t rank,
                     const struct dt_mesh_rank *before);
void dt_collect_expire(struct dt_mesh *mesh);
/* All fail. */
void dt_collect_stop(struct dt_mesh *mesh);

/* ---- ask.c ---- */

dt_result_t dt_ask_receive(struct dt_mesh *mesh, size_t from,
                           const struct dt_frame *frame, struct dt_error *err);
dt_result_t dt_answer_receive(struct dt_mesh *mesh, size_t from,
                              const struct dt_frame *frame,
                              struct dt_error *err);
void dt_ask_node_gone(struct dt_mesh *mesh, size_t node);
void dt_ask_expire(struct dt_mesh *mesh);
void dt_ask_stop(struct dt_mesh *mesh);

#endif
