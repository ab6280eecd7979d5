/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-net.h - the meshes of many nodes in one process, over a network that
 * keeps order between two nodes and no other, by a seed. Everything that they
 * tell is checked as it comes: see net.wrong. */
#ifndef MESH_NET_H
#define MESH_NET_H

#include "mesh/mesh.h"

enum { NET_NODES = 40, NET_RANKS = 160 }; /* at most */

struct packet {
    struct packet *next;
    struct dt_frame *frame; /* NULL: the sender is gone */
};

struct node {
    struct net *net;
    size_t number;
    struct dt_mesh *mesh; /* NULL: dead */
    bool out;             /* declared lost */
    bool left;
    uint32_t events[NET_NODES];                   /* of each origin */
    uint32_t lives[NET_RANKS], deaths[NET_RANKS]; /* heard of */
    struct dt_mesh_rank last[NET_RANKS];          /* how each ended */
    unsigned lost[NET_NODES];
};

struct ticket {
    struct ticket *next;
    size_t node, from;
    uint64_t ticket;
    uint32_t what;
};

/* One that waits for its done. */
struct wait {
    struct net *net;
    size_t node;    /* who waits */
    size_t peer;    /* of a question */
    unsigned group; /* of a fence */
    const uint32_t *ranks;
    size_t nranks;
    uint64_t lives; /* of its ranks */
    uint32_t round; /* of these lives */
    unsigned done;  /* how often */
    dt_result_t rc;
};

/* What a test does with upcalls; all NULL: what comes is checked, and requests
 * are answered, by net_tell, net_ask and net_answer. */
struct net_hooks {
    void *arg;
    void (*rank)(void *arg, size_t node, size_t rank); /* ended or joined */
    void (*node_lost)(void *arg, size_t node, size_t lost);
    void (*broadcast)(void *arg, size_t node, const void *data, size_t len);
    void (*asked)(void *arg, size_t node, size_t from, uint64_t ticket,
                  const void *data, size_t len);
};

struct net {
    struct net_hooks hooks;
    size_t nodes, ranks;
    uint64_t random;
    int64_t now;
    struct dt_map *map;
    struct node node[NET_NODES];
    struct packet *first[NET_NODES][NET_NODES], **last[NET_NODES][NET_NODES];
    bool link[NET_NODES]
             [NET_NODES]; /* the first is notified of the other's end */
    bool cut[NET_NODES][NET_NODES], cuts;
    struct {
        uint16_t from, to;
    } busy[NET_NODES * NET_NODES];
    size_t nbusy;
    struct ticket *tickets;
    size_t delivered;
    char wrong[256]; /* the first thing that was not as it should be */
};

/* Ranks are dealt to nodes in turn, or in blocks. */
void net_open(struct net *net, size_t nodes, size_t ranks, bool cyclic,
              uint64_t seed);
void net_close(struct net *net);
size_t net_random(struct net *net, size_t below);
__attribute__((format(printf, 2, 3))) void net_wrong(struct net *net,
                                                     const char *fmt, ...);

bool net_deliver(struct net *net); /* one packet; false: there is none */
void net_settle(struct net *net);  /* all of them, and all answers */
void net_time(struct net *net, int64_t ms);

void net_kill(struct net *net, size_t node);
/* Nothing that it sent has arrived, no node is notified. */
void net_forget(struct net *net, size_t node);
void net_leave(struct net *net, size_t node);
void net_cut(struct net *net, size_t a, size_t b); /* the link between them */

void net_tell(struct net *net, size_t node);
void net_end_rank(struct net *net, size_t rank, int code);
bool net_answer(struct net *net); /* one of the open questions */

/* An ask, and a fence of group's ranks with a part of so many bytes. */
void net_ask(struct net *net, struct wait *wait, size_t from, size_t to,
             int64_t timeout);
void net_fence(struct net *net, struct wait *wait, size_t node, unsigned group,
               const uint32_t *ranks, size_t nranks, uint32_t round,
               int64_t timeout);
/* The sum of their incarnations, as the node has it. */
uint64_t net_lives(struct net *net, size_t node, const uint32_t *ranks,
                   size_t nranks);

/* Do all living nodes know the same, and is it so? */
void net_agree(struct net *net);

#endif
