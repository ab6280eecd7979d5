/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* conn.h - within net.h: its connections, and what they tell it. */
#ifndef DT_MESH_CONN_H
#define DT_MESH_CONN_H

#include "mesh/net.h"

#define DT_CONN_STRANGER UINT32_MAX

struct dt_conn {
    struct dt_conn *next, **link_to_us;
    struct dt_link *link;
    uint32_t node;   /* DT_CONN_STRANGER until proved, of those we accept */
    int tries;       /* how often dialed; 0 if accepted */
    bool bye, waits; /* waits: until due, to be dialed again */
    uint32_t events; /* that epoll watches */
    int64_t due;
    uint8_t ip[16]; /* of the other end */
};

/* Another node. */
struct dt_net_peer {
    struct dt_conn *out; /* what we send over */
    bool bye;            /* it has said so, on one link at least */
    bool doomed, left;   /* it is lost, or has left */
    struct dt_net_peer *next_doomed;
    char *why;
};

struct dt_net {
    int epoll, wake, listener;
    struct dt_identity self;
    struct dt_net_host host;
    const struct dt_map *map;
    uint8_t ip[16];
    uint16_t port;
    bool deaf; /* we cannot accept until listen_at, for want of descriptors */
    int64_t listen_at;
    size_t strangers;
    struct dt_conn *conns;
    struct dt_net_peer *peers; /* [self.nodes] */
    struct dt_net_peer *doomed, **last_doomed;
    int64_t now, due;
    int64_t lines_since;
    int lines;
};

/* ---- conn.c ---- */

/* fd is ours, closed also on failure; node: whom we dial, or STRANGER. NULL
 * with errno. */
struct dt_conn *dt_conn_open(struct dt_net *net, int fd, uint32_t node);
void dt_conn_close(struct dt_net *net, struct dt_conn *conn);

/* NULL, and the node is doomed. */
struct dt_conn *dt_conn_dial(struct dt_net *net, uint32_t node);

/* Watch what the link now waits for. */
void dt_conn_rewatch(struct dt_net *net, struct dt_conn *conn);

/* Do what is to be done. Closes this one at most. */
void dt_conn_turn(struct dt_net *net, struct dt_conn *conn);

/* ---- net.c ---- */

int dt_net_watch(struct dt_net *net, int op, int fd, uint32_t events,
                 void *ptr);
void dt_net_wake(struct dt_net *net); /* make turn be called */
void dt_net_note_due(struct dt_net *net, int64_t at);

/* This node is lost, or has left: told in turn, which closes its links. */
void dt_net_doom(struct dt_net *net, uint32_t node, bool left, const char *why);
/* Has it said BYE on all links? */
bool dt_net_has_left(const struct dt_net *net, uint32_t node);
/* Tell the log of a stranger, if there were not too many. */
void dt_net_say_refused(struct dt_net *net, const uint8_t ip[16],
                        const char *why);

#endif
