/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* allreduce.c - flat in one node, or in two levels.
 *
 * In two levels the elements are cut into chunks, which follow each other
 * through three steps like through a pipeline; each chunk into pieces, as
 * large as a round of the node takes; each piece into one shard per rail:
 *
 *   1. every rank posts the piece of its send buffer; local rank j reduces
 * shard j of it
 *   2. the shards j of a chunk go along rail j; see rail.h
 *   3. local rank j posts what it has, and fetches what the others have
 *
 * Step 3 of a chunk follows step 1 of WINDOW later ones, so memory and network
 * work at the same time. In place, what step 3 writes to is what only the
 * owner of that shard has read, before it posted. */
#include <math.h>
#include <stdlib.h>

#include "coll/algorithm/cut.h"
#include "coll/algorithm/rail.h"

#define WINDOW 4                  /* chunks between the nodes at once */
#define ROOM   ((size_t)16 << 20) /* scratch space worth having per chunk */

/* The variants of two levels. */
enum { SHARDS, DOUBLING, HALVING, RING, TREES };
static dt_rail_fn *const rails[] = {dt_rail_finish, dt_rail_doubling,
                                    dt_rail_halving, dt_rail_ring,
                                    dt_rail_trees};

struct allreduce {
    const struct dt_plan *plan;
    const struct dt_group *node;
    dt_rail_fn *rail;
    size_t elem, unit;        /* bytes; elements between two cuts */
    size_t nchunks, npieces;  /* of all; of each chunk */
    size_t nshards;           /* of each piece */
    size_t room;              /* scratch space of one chunk, bytes */
    double prescale, factor;  /* before, and after the nodes meet */
    struct dt_extent *shards; /* mine; per piece of WINDOW chunks */
    size_t *operations;       /* room for the rail's */
    size_t ends[WINDOW];      /* the rail's last operations */
    size_t sums[WINDOW];
};

/* The least bytes of a chunk, and the parts that go separate ways. */
static void grain(const struct allreduce *a, size_t *least, size_t *parts)
{
    const struct dt_plan *plan = a->plan;
    size_t n = plan->layout->nnodes;
    *parts = 2;
    if (a->rail == dt_rail_ring)
        *parts = n;
    else if (a->rail == dt_rail_halving)
        *parts = dt_power_of_two(n);
    size_t part = dt_cut_worth(plan->tune->net_latency, plan->tune->net_byte);
    /* no message is longer than a shard of a piece, where there are rounds */
    size_t shard = dt_at_least(dt_cut_most(plan) / a->nshards, 1);
    if (plan->layout->piece_max && part > shard)
        part = shard;
    *least = part * *parts * a->nshards;
}

static void cut(struct allreduce *a)
{
    const struct dt_layout *layout = a->plan->layout;
    size_t bytes = a->plan->shape->count * a->elem, least = 0, parts = 1;
    size_t piece = dt_cut_most(a->plan);
    a->nshards = dt_cut_shards(a->plan, bytes);
    if (layout->nnodes > 1)
        grain(a, &least, &parts);
    size_t chunk = dt_at_least(bytes / (4 * WINDOW), least);
    size_t most = dt_at_least(4 * piece, least);
    if (layout->nnodes == 1)
        most = piece;
    if (chunk > most)
        chunk = most;
    size_t units = dt_ceiling(a->plan->shape->count, a->unit);
    size_t per_chunk = dt_at_least(chunk / a->elem / a->unit, 1);
    a->nchunks = dt_at_least(dt_ceiling(units, per_chunk), 1);
    a->npieces = 1;
    if (layout->piece_max)
        a->npieces = dt_at_least(
            dt_ceiling(dt_ceiling(units, a->nchunks),
                       dt_at_least(layout->piece_max / a->elem / a->unit, 1)),
            1);
    if (a->npieces > parts)
        a->npieces = dt_ceiling(a->npieces, parts) * parts;
}

static struct dt_part within(const struct allreduce *a, struct dt_part part,
                             size_t n, size_t i)
{
    struct dt_part inner = dt_part_unit(part.count, n, i, a->unit);
    inner.first += part.first;
    return inner;
}

static struct dt_part piece(const struct allreduce *a, size_t chunk, size_t i)
{
    const struct dt_part all = {0, a->plan->shape->count};
    return within(a, within(a, all, a->nchunks, chunk), a->npieces, i);
}

/* That of a local rank; empty if it has none. */
static struct dt_part shard(const struct allreduce *a, struct dt_part whole,
                            size_t local)
{
    if (local >= a->nshards)
        return (struct dt_part){whole.first, 0};
    return within(a, whole, a->nshards, local);
}

static struct allreduce prepare(const struct dt_plan *plan)
{
    const struct dt_shape *shape = plan->shape;
    size_t elem = dt_dtype_size(shape->dtype);
    struct allreduce a = {
        .plan = plan,
        .node = dt_layout_node(plan->layout),
        .rail = rails[plan->algorithm->variant],
        .elem = elem,
        .unit = DT_CUT_BYTES / elem,
        .prescale = shape->prescale,
        .factor = shape->postscale,
    };
    if (plan->layout->nnodes == 1) {
        a.prescale *= a.factor;
        a.factor = 1;
    }
    cut(&a);
    size_t most = 0; /* of a shard; the first ones are the largest */
    for (size_t i = 0; i < a.npieces; i++)
        most += shard(&a, piece(&a, 0, i), 0).count;
    a.room = dt_rail_room(a.rail, plan->layout->nnodes, most) * elem;
    return a;
}

/* ---- the steps ---- */

static struct dt_ref in(const struct allreduce *a, struct dt_part part)
{
    return dt_ref(DT_SPACE_SEND, part.first * a->elem);
}

static struct dt_ref out(const struct allreduce *a, struct dt_part part)
{
    return dt_ref(DT_SPACE_RECV, part.first * a->elem);
}

/* Alone on a node. */
static size_t take_over(const struct allreduce *a, struct dt_part part)
{
    size_t len = part.count * a->elem;
    if (a->prescale != 1)
        return dt_sched_scale(a->plan->sched, out(a, part), in(a, part), len,
                              a->prescale);
    if (a->plan->shape->in_place)
        return DT_OPERATION_NONE;
    return dt_sched_copy(a->plan->sched, out(a, part), in(a, part), len);
}

static struct dt_extent *shards_of(const struct allreduce *a, size_t chunk)
{
    return a->shards + chunk % WINDOW * a->npieces;
}

/* Step 1. */
static void collect(const struct allreduce *a, size_t chunk)
{
    struct dt_sched *sched = a->plan->sched;
    size_t first = 0;
    for (size_t i = 0; i < a->npieces; i++) {
        struct dt_part whole = piece(a, chunk, i);
        struct dt_part own = shard(a, whole, a->node->index);
        struct dt_extent *e = &shards_of(a, chunk)[i];
        *e = (struct dt_extent){first, own.count, own.first * a->elem,
                                DT_OPERATION_NONE};
        first += own.count;
        if (!whole.count)
            continue;
        if (a->node->size == 1) {
            e->ready = take_over(a, own);
            continue;
        }
        uint32_t round = dt_sched_round(sched);
        size_t at = (own.first - whole.first) * a->elem;
        size_t len = own.count * a->elem;
        if (own.count < whole.count) /* else nobody looks at it */
            dt_sched_post(sched, round, in(a, whole), whole.count * a->elem, at,
                          len);
        e->ready = dt_sched_reduce_round(sched, round, out(a, own), in(a, own),
                                         at, len, a->prescale);
    }
}

/* Step 2. */
static void meet(struct allreduce *a, size_t chunk)
{
    struct dt_sched *sched = a->plan->sched;
    const struct dt_layout *layout = a->plan->layout;
    const struct dt_extent *shards = shards_of(a, chunk);
    const struct dt_extent *last = &shards[a->npieces - 1];
    const struct dt_rail rail = {
        .plan = a->plan,
        .n = layout->nnodes,
        .me = layout->node,
        .local = a->node->index,
        .elem = a->elem,
        .count = last->first + last->count,
        .relay = chunk % WINDOW * a->room,
        .factor = a->factor,
        .extents = shards,
        .nextents = a->npieces,
        .sent = a->operations,
        .got = a->operations + layout->nnodes,
    };
    size_t *end = &a->ends[chunk % WINDOW], *sum = &a->sums[chunk % WINDOW];
    size_t first = sched->noperations;
    sched->gate = chunk < WINDOW ? DT_OPERATION_NONE : *end;
    *sum = rail.n == 1  ? dt_rail_finish(&rail)
           : rail.count ? a->rail(&rail)
                        : DT_OPERATION_NONE;
    if (chunk + WINDOW < a->nchunks)
        *end = dt_sched_join(sched, first);
    sched->gate = DT_OPERATION_NONE;
}

/* Step 3. */
static void hand_out(const struct allreduce *a, size_t chunk)
{
    struct dt_sched *sched = a->plan->sched;
    size_t me = a->node->index;
    for (size_t i = 0; a->node->size > 1 && i < a->npieces; i++) {
        struct dt_part whole = piece(a, chunk, i);
        struct dt_part own = shard(a, whole, me);
        if (!whole.count)
            continue;
        uint32_t round = dt_sched_round(sched);
        if (own.count) {
            size_t post = dt_sched_post(sched, round, out(a, own),
                                        own.count * a->elem, 0, 0);
            dt_sched_after(sched, post, a->sums[chunk % WINDOW]);
            dt_sched_after(sched, post, shards_of(a, chunk)[i].ready);
        }
        for (size_t k = 1; k <= a->node->size; k++) {
            size_t local = (me + k) % a->node->size;
            struct dt_part part = shard(a, whole, local);
            if (local != me && part.count)
                dt_sched_fetch(sched, round, local, out(a, part), 0,
                               part.count * a->elem);
        }
    }
}

static void build(struct allreduce *a)
{
    for (size_t i = 0; i < a->nchunks + WINDOW; i++) {
        if (i >= WINDOW)
            hand_out(a, i - WINDOW);
        if (i < a->nchunks) {
            collect(a, i);
            meet(a, i);
        }
    }
}

static void two_levels(const struct dt_plan *plan)
{
    struct allreduce a = prepare(plan);
    size_t nodes = plan->layout->nnodes;
    a.shards = calloc(WINDOW * a.npieces, sizeof(*a.shards));
    a.operations = calloc(2 * nodes, sizeof(*a.operations));
    if (a.shards && a.operations) {
        plan->sched->scratch =
            (a.nchunks < WINDOW ? a.nchunks : WINDOW) * a.room;
        build(&a);
    } else {
        plan->sched->failed = true;
    }
    free(a.shards);
    free(a.operations);
}

/* ---- one round, in which every rank reduces everything ---- */

static void build_flat(const struct dt_plan *plan)
{
    const struct dt_shape *shape = plan->shape;
    const struct dt_group *node = dt_layout_node(plan->layout);
    struct dt_sched *sched = plan->sched;
    size_t len = shape->count * dt_dtype_size(shape->dtype);
    double factor = shape->prescale * shape->postscale;
    struct dt_ref send = dt_ref(DT_SPACE_SEND, 0);
    struct dt_ref recv = dt_ref(DT_SPACE_RECV, 0);
    size_t last = DT_OPERATION_NONE, copy = DT_OPERATION_NONE;
    if (node->size > 1) {
        struct dt_ref shown = send;
        if (shape->in_place) {
            /* others may still look when the sum is written */
            shown = dt_ref(DT_SPACE_SCRATCH, 0);
            sched->scratch = len;
            copy = dt_sched_copy(sched, shown, send, len);
        }
        uint32_t round = dt_sched_round(sched);
        size_t post = dt_sched_post(sched, round, shown, len, 0, 0);
        last = dt_sched_reduce_round(sched, round, recv, shown, 0, len, factor);
        dt_sched_after(sched, post, copy);
        dt_sched_after(sched, last, copy);
    } else if (factor != 1) {
        last = dt_sched_scale(sched, recv, send, len, factor);
    } else if (!shape->in_place) {
        last = dt_sched_copy(sched, recv, send, len);
    }
    if (shape->op == DT_OP_AVG)
        dt_sched_after(sched, dt_sched_divide(sched, recv, len), last);
}

static double cost_flat(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    double bytes =
        (double)plan->shape->count * (double)dt_dtype_size(plan->shape->dtype);
    double ranks = (double)plan->layout->size;
    if (plan->layout->nnodes > 1 ||
        (plan->layout->piece_max && bytes > (double)plan->layout->piece_max))
        return INFINITY;
    return tune->node_latency + 3 * tune->task +
           bytes * (tune->node_byte + ranks * tune->fold_byte);
}

/* ---- what two levels cost ---- */

/* The steps in a node, of all chunks. */
static double cost_node(const struct allreduce *a)
{
    const struct dt_tune *tune = a->plan->tune;
    const struct dt_layout *layout = a->plan->layout;
    double bytes = (double)a->plan->shape->count * (double)a->elem;
    double shards = (double)a->nshards;
    double ranks = (double)layout->size / (double)layout->nnodes;
    double rounds = (double)(a->nchunks * a->npieces);
    if (!layout->piece_max)
        return bytes * tune->node_byte;
    return rounds * (4 + shards) * tune->task + 2 * tune->node_latency +
           bytes * ((2 + 1 / shards) * tune->node_byte +
                    ranks / shards * tune->fold_byte);
}

/* The rail: steps that follow each other, bytes over a link, and messages,
 * all of one chunk. */
struct way {
    double steps, bytes, messages;
};

static struct way way(const struct allreduce *a, double bytes)
{
    size_t nodes = a->plan->layout->nnodes;
    size_t power = dt_power_of_two(nodes);
    double n = (double)nodes, p = (double)power;
    double log = (double)dt_log_two(nodes), lent = power < nodes ? 1 : 0;
    if (a->rail == dt_rail_ring)
        return (struct way){2 * (n - 1), 2 * (n - 1) / n * bytes, 2 * (n - 1)};
    if (a->rail == dt_rail_halving)
        return (struct way){2 * (log + lent), 2 * ((p - 1) / p + lent) * bytes,
                            2 * (log + lent)};
    if (a->rail == dt_rail_doubling)
        return (struct way){log + 2 * lent, (log + 2 * lent) * bytes,
                            log + 2 * lent};
    /* both ways at once, and both trees: not all of a link can be had */
    return (struct way){2 * (log + 1), 2.2 * bytes, 6};
}

static double cost_two_levels(const struct dt_plan *plan)
{
    const struct dt_tune *tune = plan->tune;
    if (plan->layout->nnodes == 1)
        return INFINITY;
    const struct allreduce a = prepare(plan);
    if (a.room > ROOM && a.rail != dt_rail_trees)
        return INFINITY;
    double chunks = (double)a.nchunks;
    double shard = (double)plan->shape->count * (double)a.elem / chunks /
                   (double)a.nshards;
    struct way w = way(&a, shard);
    double sent = w.bytes * (tune->net_byte + tune->fold_byte) +
                  w.messages * 3 * tune->task;
    double flow = w.steps * tune->net_latency / WINDOW;
    double depth =
        a.rail == dt_rail_trees ? w.steps / 2 * shard / 2 * tune->net_byte : 0;
    double net = chunks * (flow > sent ? flow : sent);
    double one = w.steps * tune->net_latency + sent + depth;
    if (net < one)
        net = one;
    double node = cost_node(&a);
    double less = node > net ? net : node;
    /* two things at once disturb each other, say by half */
    return node + net - (a.nchunks > 1 ? less / 2 : 0);
}

static double cost_shards(const struct dt_plan *plan)
{
    if (plan->layout->nnodes > 1)
        return INFINITY;
    const struct allreduce a = prepare(plan);
    return cost_node(&a);
}

const struct dt_algorithm dt_allreduce_table[] = {
    {"flat", cost_flat, build_flat, 0},
    {"shards", cost_shards, two_levels, SHARDS},
    {"doubling", cost_two_levels, two_levels, DOUBLING},
    {"halving", cost_two_levels, two_levels, HALVING},
    {"ring", cost_two_levels, two_levels, RING},
    {"trees", cost_two_levels, two_levels, TREES},
    {NULL, NULL, NULL, 0},
};
