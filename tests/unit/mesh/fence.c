/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fence.c - fences whose parts tell whose they are. */
#include <stdio.h>
#include <string.h>

#include "fake-net.h"

uint64_t net_lives(struct net *net, size_t node, const uint32_t *ranks,
                   size_t nranks)
{
    uint64_t lives = 0;
    for (size_t i = 0; i < nranks; i++)
        lives += dt_mesh_rank(net->node[node].mesh, ranks[i])->incarnation;
    return lives;
}

/* A node's part: who, what, and some bytes that follow from it. */
struct part {
    uint32_t node, group, round, len;
    uint64_t lives;
};

static unsigned char byte_of(const struct part *part, size_t i)
{
    return (unsigned char)(part->node * 7 + part->round * 13 + i);
}

static size_t make_part(struct net *net, const struct wait *wait,
                        unsigned char bytes[256])
{
    struct part part = {.node = (uint32_t)wait->node,
                        .group = wait->group,
                        .round = wait->round,
                        .len = (uint32_t)net_random(net, 200),
                        .lives = wait->lives};
    memcpy(bytes, &part, sizeof(part));
    for (size_t i = 0; i < part.len; i++)
        bytes[sizeof(part) + i] = byte_of(&part, i);
    return sizeof(part) + part.len;
}

/* One part at the front of data: is it one of this fence? Its length. */
static size_t check_part(const struct wait *wait, const unsigned char *data,
                         size_t len, unsigned seen[NET_NODES])
{
    struct part part = {.node = NET_NODES};
    bool good = len >= sizeof(part);
    if (good)
        memcpy(&part, data, sizeof(part));
    good = good && part.node < NET_NODES && part.group == wait->group &&
           part.round == wait->round && part.lives == wait->lives &&
           part.len <= len - sizeof(part);
    for (size_t i = 0; good && i < part.len; i++)
        good = data[sizeof(part) + i] == byte_of(&part, i);
    if (!good) {
        net_wrong(wait->net,
                  "node %zu, fence %u of group %u: a part of node %u, round %u",
                  wait->node, (unsigned)wait->round, wait->group,
                  (unsigned)part.node, (unsigned)part.round);
        return len;
    }
    seen[part.node]++;
    return sizeof(part) + part.len;
}

static void fence_done(void *arg, dt_result_t rc, const void *data, size_t len)
{
    struct wait *wait = arg;
    unsigned seen[NET_NODES] = {0}, wanted[NET_NODES] = {0};
    const unsigned char *bytes = data;
    wait->rc = rc;
    if (wait->done++)
        net_wrong(wait->net, "a fence was done twice");
    for (size_t at = 0; rc == DT_SUCCESS && at < len;)
        at += check_part(wait, bytes + at, len - at, seen);
    for (size_t i = 0; rc == DT_SUCCESS && i < wait->nranks; i++)
        wanted[wait->net->map->node_of[wait->ranks[i]]] = 1;
    if (memcmp(seen, wanted, sizeof(seen)) != 0)
        net_wrong(wait->net, "node %zu: a fence without all parts", wait->node);
}

void net_fence(struct net *net, struct wait *wait, size_t node, unsigned group,
               const uint32_t *ranks, size_t nranks, uint32_t round,
               int64_t timeout)
{
    unsigned char bytes[256];
    char name[16];
    *wait = (struct wait){.net = net,
                          .node = node,
                          .group = group,
                          .ranks = ranks,
                          .nranks = nranks,
                          .lives = net_lives(net, node, ranks, nranks),
                          .round = round};
    size_t len = make_part(net, wait, bytes);
    snprintf(name, sizeof(name), "%.*s", (int)(group % 4), "xyz");
    struct dt_collective what = {
        .what = group, .name = name, .ranks = ranks, .nranks = nranks};
    dt_mesh_collect(net->node[node].mesh, &what, bytes, len, timeout,
                    fence_done, wait);
}
