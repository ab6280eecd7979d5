/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* net.h - the links of one daemon: those it accepts, and those it dials when it
 * has something to send. */
#ifndef DT_MESH_NET_H
#define DT_MESH_NET_H

#include <netinet/in.h>

#include "mesh/link.h"
#include "mesh/map.h"

struct dt_net;

/* Strangers that have connected and not yet proved who they are. */
#define DT_NET_STRANGERS 64

struct dt_net_host {
    void *arg;
    /* A frame from a node; it is valid until return. */
    void (*received)(void *arg, size_t node, const struct dt_frame *frame);
    /* A node cannot be reached any more, once per node. left: it said BYE. */
    void (*gone)(void *arg, size_t node, bool left, const char *why);
    /* Somebody was refused: a line for the log, at most a few per minute. */
    void (*refused)(void *arg, const char *line);
};

/* Listen at this address of ours, on any port. self is copied, its strings
 * must live on. */
dt_result_t dt_net_open(struct dt_net **net, const struct sockaddr *at,
                        socklen_t at_len, const struct dt_identity *self,
                        const struct dt_net_host *host, struct dt_error *err);
/* What to write into this node's entry of the map. */
void dt_net_address(const struct dt_net *net, uint8_t ip[16], uint16_t *port);
/* Now others can be dialed; map must outlive net. */
void dt_net_set_map(struct dt_net *net, const struct dt_map *map);

/* Queue frame (a reference is taken), dial if need be. */
void dt_net_send(struct dt_net *net, size_t node, struct dt_frame *frame);
/* Drop the links to a node: it broke the rules. gone follows, from turn. */
void dt_net_drop(struct dt_net *net, size_t node, const char *why);

/* All that was sent has been written to nodes that have proved who they are. */
bool dt_net_flushed(const struct dt_net *net);

int dt_net_fd(const struct dt_net *net); /* readable when turn has work */
/* Never blocks. Upcalls come only from here; they may send. Returns when to
 * call it again at the latest, of the clock of now, in ms. */
int64_t dt_net_progress(struct dt_net *net, int64_t now);

/* Say BYE to all, send what is queued for at most ms, and close. May be NULL.
 */
void dt_net_close(struct dt_net *net, int64_t ms);

/* Connect, without blocking, to ip and port; -1 with errno. */
int dt_net_dial(const uint8_t ip[16], uint16_t port);

#endif
