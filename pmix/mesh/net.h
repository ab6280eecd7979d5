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

/* Accepted connections whose handshake has not ended, at most; those of one
 * source address: strangers.h. */
#define DT_NET_UNAUTHENTICATED 64

struct dt_net_host {
    void *arg;
    /* A frame from a node; it is valid until return. */
    void (*received)(void *arg, size_t node, const struct dt_frame *frame);
    /* A node cannot be reached any more, once per node. left: it has sent BYE.
     */
    void (*gone)(void *arg, size_t node, bool left, const char *why);
    /* A connection was refused: a line for the log, at most one per minute and
     * source address, and of all in dt_net_close. */
    void (*refused)(void *arg, const char *line);
};

/* Listen at this address of this host, on any port. self is copied, its strings
 * must live on. */
dt_result_t dt_net_open(struct dt_net **net, const struct sockaddr *at,
                        socklen_t at_len, const struct dt_identity *self,
                        const struct dt_net_host *host, struct dt_error *err);
/* What to write into this node's entry of the map. */
void dt_net_address(const struct dt_net *net, uint8_t ip[16], uint16_t *port);
/* Now others can be dialed; map must outlive net. */
void dt_net_set_map(struct dt_net *net, const struct dt_map *map);

/* Queue frame (a reference is taken); dial if there is no link. */
void dt_net_send(struct dt_net *net, size_t node, struct dt_frame *frame);
/* Drop the links to a node that broke the protocol. gone follows, from
 * progress. */
void dt_net_drop(struct dt_net *net, size_t node, const char *why);

/* All that was sent has been written, to nodes whose handshake has ended. */
bool dt_net_flushed(const struct dt_net *net);

int dt_net_fd(const struct dt_net *net); /* readable when progress has work */
/* Never blocks. Upcalls come only from here; they may send. Returns the latest
 * time of the next call, of the clock of now, in ms. */
int64_t dt_net_progress(struct dt_net *net, int64_t now);

/* Send BYE to all nodes, write what is queued for at most ms, and close. net
 * may be NULL.
 */
void dt_net_close(struct dt_net *net, int64_t ms);

/* Connect, without blocking, to ip and port; -1 with errno. */
int dt_net_dial(const uint8_t ip[16], uint16_t port);

#endif
