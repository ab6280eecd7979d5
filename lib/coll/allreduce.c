/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* allreduce.c - two-level allreduce.
 *
 * The elements are cut into chunks, which follow each other through three
 * steps like through a pipeline; each chunk into one shard per rail:
 *
 *   1. reduce-scatter in the node: shard j goes to local rank j, which adds
 *      in the order of the local ranks
 *   2. allreduce of shard j along rail j, the ranks of local rank j on all
 *      nodes: recursive doubling when short, else a ring (reduce-scatter and
 *      allgather; Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce")
 *   3. allgather in the node: local rank j gives shard j to the others
 *
 * Every sum has a fixed order, and where two ranks compute the same sum both
 * take the operand of the lower node first, so all get the same bits. */
#include "coll/comm.h"
#include "coll/part.h"

#define CHUNK_BYTES ((size_t)1 << 20) /* what goes through the pipeline */
#define WINDOW      4                 /* chunks under way at once */
#define SHARD_BYTES ((size_t)4096)    /* not worth cutting further */
#define RING_BYTES  ((size_t)8192)    /* a segment worth a ring's rounds */

/* What one chunk needs to know. Offsets and lengths are bytes. */
struct chunk {
    struct dt_sched *sched;
    const struct dt_world *world;
    const struct dt_group *node;
    const struct dt_shape *shape;
    size_t elem;             /* bytes of an element */
    struct dt_part elements; /* of the whole, in this chunk */
    size_t nshards;
    size_t room;           /* bytes of the largest shard */
    size_t scratch, relay; /* offsets of scratch space: for step 1, step 2 */
};

static struct dt_part shard(const struct chunk *c, size_t j)
{
    struct dt_part part = dt_part(c->elements.count, c->nshards, j);
    part.first += c->elements.first;
    return part;
}

/* Both offsets of a part are the same in the two buffers of the user. */
static struct dt_ref in(const struct chunk *c, struct dt_part part)
{
    return dt_ref(DT_SPACE_SEND, part.first * c->elem);
}

static struct dt_ref out(const struct chunk *c, struct dt_part part)
{
    return dt_ref(DT_SPACE_RECV, part.first * c->elem);
}

/* Room for the share of local rank i; the own place is free. */
static struct dt_ref share(const struct chunk *c, size_t i)
{
    return dt_ref(DT_SPACE_SCRATCH, c->scratch + i * c->room);
}

/* Room for what comes along the rail. */
static struct dt_ref relay(const struct chunk *c, size_t offset)
{
    return dt_ref(DT_SPACE_SCRATCH, c->relay + offset);
}

/* Step 1 for the shard this rank owns; returns the task that ends it. Only
 * the last addition writes to the receive buffer, which may be the send
 * buffer. */
static size_t gather_own(const struct chunk *c, struct dt_part own)
{
    const struct dt_group *node = c->node;
    size_t len = own.count * c->elem, last = DT_TASK_NONE;
    struct dt_ref sum = in(c, own);
    if (node->size == 1)
        return c->shape->in_place
                   ? DT_TASK_NONE
                   : dt_sched_copy(c->sched, out(c, own), sum, len);
    for (size_t i = 0; i < node->size; i++) {
        struct dt_ref term = in(c, own);
        size_t got = DT_TASK_NONE;
        if (i != node->index) {
            term = share(c, i);
            got = dt_sched_recv(c->sched, node->ranks[i], term, len);
        }
        if (i == 0) {
            sum = term;
            last = got;
            continue;
        }
        struct dt_ref dst =
            i + 1 == node->size ? out(c, own) : share(c, node->index);
        size_t add = dt_sched_reduce(c->sched, dst, sum, term, len);
        dt_sched_after(c->sched, add, got);
        dt_sched_after(c->sched, add, last);
        sum = dst;
        last = add;
    }
    return last;
}

/* Exchange a whole shard with one peer of the rail and add; returns the
 * task that ends it. */
static size_t exchange(const struct chunk *c, struct dt_part own,
                       size_t peer_index, size_t round, size_t after)
{
    size_t peer = c->world->rail.ranks[peer_index];
    size_t len = own.count * c->elem;
    struct dt_ref mine = out(c, own), theirs = relay(c, round * len);
    size_t sent = dt_sched_send(c->sched, peer, mine, len);
    size_t got = dt_sched_recv(c->sched, peer, theirs, len);
    bool lower = peer_index < c->world->rail.index;
    size_t add = dt_sched_reduce(c->sched, mine, lower ? theirs : mine,
                                 lower ? mine : theirs, len);
    dt_sched_after(c->sched, sent, after);
    dt_sched_after(c->sched, add, sent);
    dt_sched_after(c->sched, add, got);
    dt_sched_after(c->sched, add, after);
    return add;
}

static size_t power_of_two(size_t n)
{
    size_t power = 1;
    while (power * 2 <= n)
        power *= 2;
    return power;
}

/* Step 2, short: ranks beyond a power of two lend their share to a partner
 * and get the result back. */
static size_t doubling(const struct chunk *c, struct dt_part own, size_t after)
{
    const struct dt_group *rail = &c->world->rail;
    size_t len = own.count * c->elem, me = rail->index;
    size_t power = power_of_two(rail->size), round = 0;
    if (me >= power) {
        size_t partner = rail->ranks[me - power];
        size_t sent = dt_sched_send(c->sched, partner, out(c, own), len);
        size_t got = dt_sched_recv(c->sched, partner, out(c, own), len);
        dt_sched_after(c->sched, sent, after);
        dt_sched_after(c->sched, got, sent);
        return got;
    }
    bool lender = me + power < rail->size;
    if (lender) {
        struct dt_ref theirs = relay(c, round++ * len);
        size_t got =
            dt_sched_recv(c->sched, rail->ranks[me + power], theirs, len);
        size_t add =
            dt_sched_reduce(c->sched, out(c, own), out(c, own), theirs, len);
        dt_sched_after(c->sched, add, got);
        dt_sched_after(c->sched, add, after);
        after = add;
    }
    for (size_t bit = 1; bit < power; bit *= 2)
        after = exchange(c, own, me ^ bit, round++, after);
    if (lender) {
        size_t sent =
            dt_sched_send(c->sched, rail->ranks[me + power], out(c, own), len);
        dt_sched_after(c->sched, sent, after);
        /* the caller may change the shard next */
        after = sent;
    }
    return after;
}

/* Step 2, long. In round s of the first half a rank passes segment me - s to
 * the next and adds what it gets to segment me - s - 1; in the second half
 * the finished segments travel round once more. */
static size_t ring(const struct chunk *c, struct dt_part own, size_t after)
{
    const struct dt_group *rail = &c->world->rail;
    size_t n = rail->size, me = rail->index;
    size_t next = rail->ranks[(me + 1) % n];
    size_t prev = rail->ranks[(me + n - 1) % n];
    size_t first = c->sched->ntasks;
    size_t ready = after; /* the segment to send next is complete */
    for (size_t s = 0; s + 1 < n; s++) {
        struct dt_part pass = dt_part(own.count, n, (me + n - s) % n);
        struct dt_part add = dt_part(own.count, n, (me + 2 * n - s - 1) % n);
        struct dt_ref incoming = relay(c, add.first * c->elem);
        size_t len = add.count * c->elem;
        pass.first += own.first;
        add.first += own.first;
        size_t sent =
            dt_sched_send(c->sched, next, out(c, pass), pass.count * c->elem);
        dt_sched_after(c->sched, sent, ready);
        size_t got = dt_sched_recv(c->sched, prev, incoming, len);
        ready =
            dt_sched_reduce(c->sched, out(c, add), incoming, out(c, add), len);
        dt_sched_after(c->sched, ready, got);
        dt_sched_after(c->sched, ready, after);
    }
    /* segments are written over only when all of them have been passed on */
    size_t half = dt_sched_join(c->sched, first);
    ready = half;
    for (size_t s = 0; s + 1 < n; s++) {
        struct dt_part pass = dt_part(own.count, n, (me + n + 1 - s) % n);
        struct dt_part get = dt_part(own.count, n, (me + n - s) % n);
        pass.first += own.first;
        get.first += own.first;
        size_t sent =
            dt_sched_send(c->sched, next, out(c, pass), pass.count * c->elem);
        dt_sched_after(c->sched, sent, ready);
        ready = dt_sched_recv(c->sched, prev, out(c, get), get.count * c->elem);
        dt_sched_after(c->sched, ready, half);
    }
    return dt_sched_join(c->sched, first);
}

/* Steps 2 and 3 for the shard this rank owns. */
static void finish_own(const struct chunk *c, struct dt_part own, size_t after)
{
    size_t len = own.count * c->elem;
    if (c->world->nnodes > 1)
        after = len / c->world->nnodes < RING_BYTES ? doubling(c, own, after)
                                                    : ring(c, own, after);
    if (c->shape->op == DT_OP_AVG) {
        size_t divide = dt_sched_divide(c->sched, out(c, own), len);
        dt_sched_after(c->sched, divide, after);
        after = divide;
    }
    for (size_t i = 0; i < c->node->size; i++)
        if (i != c->node->index)
            dt_sched_after(
                c->sched,
                dt_sched_send(c->sched, c->node->ranks[i], out(c, own), len),
                after);
}

static void build_chunk(const struct chunk *c)
{
    size_t me = c->node->index;
    for (size_t j = 0; j < c->nshards; j++) {
        struct dt_part part = shard(c, j);
        if (j == me) {
            finish_own(c, part, gather_own(c, part));
            continue;
        }
        size_t len = part.count * c->elem, owner = c->node->ranks[j];
        size_t sent = dt_sched_send(c->sched, owner, in(c, part), len);
        size_t got = dt_sched_recv(c->sched, owner, out(c, part), len);
        dt_sched_after(c->sched, got, sent); /* matters in place */
    }
}

static size_t shards_for(const struct dt_world *world, size_t bytes)
{
    size_t n = bytes / SHARD_BYTES;
    if (n > world->nrails)
        n = world->nrails;
    return n ? n : 1;
}

/* Shards that fit in what step 2 receives: one per round of doubling and one
 * of a lender; a ring needs one in all. */
static size_t relay_shards(const struct dt_world *world)
{
    size_t rounds = 1;
    for (size_t reached = 1; reached < world->nnodes; reached *= 2)
        rounds++;
    return rounds;
}

void dt_allreduce_build(struct dt_sched *sched, const struct dt_comm *comm,
                        const struct dt_shape *shape)
{
    const struct dt_world *world = comm->world;
    const struct dt_group *node = &world->nodes[world->node];
    size_t elem = dt_dtype_size(shape->dtype);
    size_t nchunks = (shape->count * elem + CHUNK_BYTES - 1) / CHUNK_BYTES;
    if (!nchunks)
        return;
    size_t most = dt_part(shape->count, nchunks, 0).count;
    size_t nshards = shards_for(world, most * elem);
    size_t room = dt_part(most, nshards, 0).count * elem;
    size_t all = (node->size + relay_shards(world)) * room;
    size_t joins[WINDOW];
    for (size_t i = 0; i < nchunks; i++) {
        const struct chunk c = {
            .sched = sched,
            .world = world,
            .node = node,
            .shape = shape,
            .elem = elem,
            .elements = dt_part(shape->count, nchunks, i),
            .nshards = nshards,
            .room = room,
            .scratch = i % WINDOW * all,
            .relay = i % WINDOW * all + node->size * room,
        };
        sched->gate = i < WINDOW ? DT_TASK_NONE : joins[i % WINDOW];
        size_t first = sched->ntasks;
        build_chunk(&c);
        joins[i % WINDOW] = dt_sched_join(sched, first);
    }
    sched->gate = DT_TASK_NONE;
    sched->scratch = (nchunks < WINDOW ? nchunks : WINDOW) * all;
}
