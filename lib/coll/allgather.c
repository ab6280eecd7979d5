/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* allgather.c - two-level allgather: everybody to everybody inside the node;
 * the leaders pass the blocks of whole nodes round a ring, and each hands on
 * to its node what it gets. */
#include "coll/comm.h"

struct gather {
    struct dt_sched *sched;
    const struct dt_world *world;
    size_t block; /* bytes of one rank */
};

static struct dt_ref block_of(const struct gather *g, size_t rank)
{
    return dt_ref(DT_SPACE_RECV, rank * g->block);
}

/* Blocks of ranks that follow each other are one message: the run that begins
 * at member i of a node ends before the returned one. */
static size_t run_end(const struct dt_group *node, size_t i)
{
    size_t end = i + 1;
    while (end < node->size && node->ranks[end] == node->ranks[end - 1] + 1)
        end++;
    return end;
}

/* Inside the node. The own block goes out of the send buffer. */
static void gather_node(const struct gather *g, bool in_place)
{
    const struct dt_group *node = &g->world->nodes[g->world->node];
    struct dt_ref mine = dt_ref(DT_SPACE_SEND, 0);
    if (!in_place)
        dt_sched_copy(g->sched, block_of(g, g->world->rank), mine, g->block);
    for (size_t i = 0; i < node->size; i++) {
        size_t peer = node->ranks[i];
        if (peer == g->world->rank)
            continue;
        dt_sched_send(g->sched, peer, mine, g->block);
        dt_sched_recv(g->sched, peer, block_of(g, peer), g->block);
    }
}

/* Send all blocks of one node, which are there once task after is done. */
static void pass_node(const struct gather *g, size_t whose, size_t to,
                      size_t after)
{
    const struct dt_group *node = &g->world->nodes[whose];
    for (size_t i = 0, end; i < node->size; i = end) {
        end = run_end(node, i);
        size_t sent = dt_sched_send(g->sched, to, block_of(g, node->ranks[i]),
                                    (end - i) * g->block);
        dt_sched_after(g->sched, sent, after);
    }
}

/* Receive all blocks of one node; returns the task that ends it. */
static size_t take_node(const struct gather *g, size_t whose, size_t from)
{
    const struct dt_group *node = &g->world->nodes[whose];
    size_t first = g->sched->ntasks;
    for (size_t i = 0, end; i < node->size; i = end) {
        end = run_end(node, i);
        dt_sched_recv(g->sched, from, block_of(g, node->ranks[i]),
                      (end - i) * g->block);
    }
    return dt_sched_join(g->sched, first);
}

/* A leader, once the blocks of its own node are there. In round s it passes
 * on node me - s, which it got in the round before. */
static void build_leader(const struct gather *g, size_t after)
{
    const struct dt_group *leaders = &g->world->leaders;
    const struct dt_group *node = &g->world->nodes[g->world->node];
    size_t n = leaders->size, me = leaders->index;
    size_t next = leaders->ranks[(me + 1) % n];
    size_t prev = leaders->ranks[(me + n - 1) % n];
    for (size_t s = 0; s + 1 < n; s++) {
        size_t incoming = (me + 2 * n - s - 1) % n;
        pass_node(g, (me + n - s) % n, next, after);
        after = take_node(g, incoming, prev);
        for (size_t i = 1; i < node->size; i++)
            pass_node(g, incoming, node->ranks[i], after);
    }
}

/* The others get the nodes from their leader in the same order. */
static void build_follower(const struct gather *g)
{
    const struct dt_world *world = g->world;
    size_t n = world->nnodes;
    for (size_t s = 0; s + 1 < n; s++)
        take_node(g, (world->node + 2 * n - s - 1) % n,
                  world->leaders.ranks[world->node]);
}

void dt_allgather_build(struct dt_sched *sched, const struct dt_comm *comm,
                        const struct dt_shape *shape)
{
    struct gather g = {.sched = sched,
                       .world = comm->world,
                       .block = shape->count * dt_dtype_size(shape->dtype)};
    gather_node(&g, shape->in_place);
    if (g.world->leaders.index != DT_NOT_A_MEMBER)
        build_leader(&g, dt_sched_join(sched, 0));
    else
        build_follower(&g);
}
