/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bcast.c - two-level broadcast: a binomial tree over one rank per node (the
 * root, elsewhere the leader), which gives to the others of its node. Chunks
 * follow each other through the tree. */
#include "coll/comm.h"
#include "coll/part.h"

#define CHUNK_BYTES ((size_t)1 << 20)
#define WINDOW      8

/* Who receives for this node, when the root's node is first. */
static size_t head(const struct dt_world *world, size_t node, size_t root)
{
    return node == world->node_of[root] ? root : world->leaders.ranks[node];
}

/* The node's head: from the parent, to the children, then to the node. */
static void build_head(struct dt_sched *sched, const struct dt_world *world,
                       size_t root, struct dt_ref chunk, size_t len)
{
    size_t n = world->nnodes, first = world->node_of[root];
    size_t me = (world->node + n - first) % n, got = DT_TASK_NONE, bit = 1;
    while (bit < n && !(me & bit))
        bit *= 2;
    if (me)
        got = dt_sched_recv(sched, head(world, (me - bit + first) % n, root),
                            chunk, len);
    for (bit /= 2; bit > 0; bit /= 2)
        if (me + bit < n)
            dt_sched_after(
                sched,
                dt_sched_send(sched, head(world, (me + bit + first) % n, root),
                              chunk, len),
                got);
    const struct dt_group *node = &world->nodes[world->node];
    for (size_t i = 0; i < node->size; i++)
        if (node->ranks[i] != world->rank)
            dt_sched_after(
                sched, dt_sched_send(sched, node->ranks[i], chunk, len), got);
}

void dt_bcast_build(struct dt_sched *sched, const struct dt_comm *comm,
                    const struct dt_shape *shape)
{
    const struct dt_world *world = comm->world;
    size_t elem = dt_dtype_size(shape->dtype);
    size_t nchunks = (shape->count * elem + CHUNK_BYTES - 1) / CHUNK_BYTES;
    size_t mine = head(world, world->node, shape->root);
    size_t joins[WINDOW];
    for (size_t i = 0; i < nchunks; i++) {
        struct dt_part part = dt_part(shape->count, nchunks, i);
        struct dt_ref chunk = dt_ref(DT_SPACE_RECV, part.first * elem);
        sched->gate = i < WINDOW ? DT_TASK_NONE : joins[i % WINDOW];
        size_t first = sched->ntasks;
        if (world->rank == mine)
            build_head(sched, world, shape->root, chunk, part.count * elem);
        else
            dt_sched_recv(sched, mine, chunk, part.count * elem);
        joins[i % WINDOW] = dt_sched_join(sched, first);
    }
    sched->gate = DT_TASK_NONE;
}
