/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rail.c - allreduce of one vector between the nodes. */
#include "coll/algorithm/rail.h"

#include "coll/algorithm/tree.h"

size_t dt_power_of_two(size_t n)
{
    size_t power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

size_t dt_log_two(size_t n)
{
    size_t steps = 0;
    for (size_t power = dt_power_of_two(n); power > 1; power /= 2)
        steps++;
    return steps;
}

size_t dt_rail_room(dt_rail_fn *algorithm, size_t n, size_t count)
{
    if (n == 1)
        return 0;
    if (algorithm == dt_rail_doubling)
        return (dt_log_two(n) + 1) * count;
    if (algorithm == dt_rail_halving)
        return 2 * count + 64 * n; /* halves may be rounded up */
    if (algorithm == dt_rail_trees)
        return 4 * (count - count / 2);
    return count;
}

/* ---- what is done to a part of the vector, piece by piece ---- */

/* The common part of a piece and part; first counts in the vector. */
static struct dt_part common(const struct dt_extent *e, struct dt_part part)
{
    size_t first = e->first > part.first ? e->first : part.first;
    size_t end = e->first + e->count;
    if (end > part.first + part.count)
        end = part.first + part.count;
    return (struct dt_part){first, end > first ? end - first : 0};
}

static struct dt_ref place(const struct dt_rail *r, const struct dt_extent *e,
                           size_t element)
{
    return dt_ref(DT_SPACE_RECV, e->offset + (element - e->first) * r->elem);
}

static size_t peer(const struct dt_rail *r, size_t node)
{
    return r->plan->layout->nodes[node].ranks[r->local];
}

/* One name for the operations from first on. */
static size_t all(const struct dt_rail *r, size_t first)
{
    struct dt_sched *sched = r->plan->sched;
    if (sched->noperations == first)
        return DT_OPERATION_NONE;
    return sched->noperations == first + 1 ? first
                                           : dt_sched_join(sched, first);
}

static size_t
move(const struct dt_rail *r, size_t node, struct dt_part part, size_t after,
     size_t (*add_operation)(struct dt_sched *, size_t, struct dt_ref, size_t))
{
    struct dt_sched *sched = r->plan->sched;
    size_t first = sched->noperations;
    for (size_t i = 0; i < r->nextents; i++) {
        const struct dt_extent *e = &r->extents[i];
        struct dt_part both = common(e, part);
        size_t operation =
            add_operation(sched, peer(r, node), place(r, e, both.first),
                          both.count * r->elem);
        dt_sched_after(sched, operation, e->ready);
        dt_sched_after(sched, operation, after);
    }
    return all(r, first);
}

static size_t send(const struct dt_rail *r, size_t node, struct dt_part part,
                   size_t after)
{
    return move(r, node, part, after, dt_sched_send);
}

/* Receive over what is there. */
static size_t receive(const struct dt_rail *r, size_t node, struct dt_part part,
                      size_t after)
{
    return move(r, node, part, after, dt_sched_recv);
}

/* Receive to element relay of the scratch space, and add. */
static size_t add(const struct dt_rail *r, size_t node, struct dt_part part,
                  size_t relay, size_t after)
{
    struct dt_sched *sched = r->plan->sched;
    size_t last = DT_OPERATION_NONE, first = DT_OPERATION_NONE, n = 0;
    for (size_t i = 0; i < r->nextents; i++) {
        const struct dt_extent *e = &r->extents[i];
        struct dt_part both = common(e, part);
        size_t len = both.count * r->elem;
        if (!len)
            continue;
        struct dt_ref mine = place(r, e, both.first);
        struct dt_ref theirs =
            dt_ref(DT_SPACE_SCRATCH,
                   r->relay + (relay + both.first - part.first) * r->elem);
        size_t got = dt_sched_recv(sched, peer(r, node), theirs, len);
        bool lower = node < r->me;
        last = dt_sched_reduce(sched, mine, lower ? theirs : mine,
                               lower ? mine : theirs, len);
        dt_sched_after(sched, last, got);
        dt_sched_after(sched, last, e->ready);
        dt_sched_after(sched, last, after);
        if (!n++)
            first = got;
    }
    return n > 1 ? dt_sched_join(sched, first) : last;
}

/* What is left to do to a complete sum. */
static size_t finish(const struct dt_rail *r, struct dt_part part, size_t after)
{
    struct dt_sched *sched = r->plan->sched;
    size_t first = sched->noperations;
    bool average = r->plan->shape->op == DT_OP_AVG;
    if (r->factor == 1 && !average)
        return after;
    for (size_t i = 0; i < r->nextents; i++) {
        const struct dt_extent *e = &r->extents[i];
        struct dt_part both = common(e, part);
        struct dt_ref at = place(r, e, both.first);
        size_t len = both.count * r->elem, scaled = DT_OPERATION_NONE;
        if (r->factor != 1)
            scaled = dt_sched_scale(sched, at, at, len, r->factor);
        dt_sched_after(sched, scaled, e->ready);
        dt_sched_after(sched, scaled, after);
        size_t divided =
            average ? dt_sched_divide(sched, at, len) : DT_OPERATION_NONE;
        dt_sched_after(sched, divided, e->ready);
        dt_sched_after(sched, divided, after);
        dt_sched_after(sched, divided, scaled);
    }
    return all(r, first);
}

static struct dt_part whole(const struct dt_rail *r)
{
    return (struct dt_part){0, r->count};
}

/* A segment, or half, of a part; made of whole pieces where they share out
 * evenly, so that messages are not cut further. */
static struct dt_part cut(const struct dt_rail *r, struct dt_part part,
                          size_t n, size_t i)
{
    const struct dt_extent *e = r->extents;
    size_t first = 0, last, end = part.first + part.count;
    while (first < r->nextents && e[first].first < part.first)
        first++;
    for (last = first; last < r->nextents && e[last].first < end;)
        last++;
    if (last > first && (last - first) % n == 0 &&
        e[first].first == part.first &&
        e[last - 1].first + e[last - 1].count == end) {
        struct dt_part group = dt_part(last - first, n, i);
        size_t begin = first + group.first, stop = begin + group.count;
        size_t at = e[begin].first;
        return (struct dt_part){at, e[stop - 1].first + e[stop - 1].count - at};
    }
    struct dt_part inner = dt_part(part.count, n, i);
    inner.first += part.first;
    return inner;
}

size_t dt_rail_finish(const struct dt_rail *r)
{
    return finish(r, whole(r), DT_OPERATION_NONE);
}

/* ---- nodes beyond a power of two ---- */

static size_t lend(const struct dt_rail *r, size_t power)
{
    size_t sent = send(r, r->me - power, whole(r), DT_OPERATION_NONE);
    return receive(r, r->me - power, whole(r), sent);
}

/* Take the share of who lends to me, if one does, to element relay. */
static size_t borrow(const struct dt_rail *r, size_t power, size_t relay)
{
    if (r->me + power >= r->n)
        return DT_OPERATION_NONE;
    return add(r, r->me + power, whole(r), relay, DT_OPERATION_NONE);
}

static void give_back(const struct dt_rail *r, size_t power, size_t after)
{
    if (r->me + power < r->n)
        send(r, r->me + power, whole(r), after);
}

/* ---- the algorithms ---- */

size_t dt_rail_doubling(const struct dt_rail *r)
{
    size_t power = dt_power_of_two(r->n), step = 0;
    if (r->me >= power)
        return lend(r, power);
    size_t after = borrow(r, power, 0);
    for (size_t bit = 1; bit < power; bit *= 2) {
        size_t other = r->me ^ bit;
        size_t sent = send(r, other, whole(r), after);
        after = add(r, other, whole(r), ++step * r->count, sent);
    }
    after = finish(r, whole(r), after);
    give_back(r, power, after);
    return after;
}

size_t dt_rail_halving(const struct dt_rail *r)
{
    size_t power = dt_power_of_two(r->n), depth = 0;
    if (r->me >= power)
        return lend(r, power);
    size_t after = borrow(r, power, 0), relay = r->count, sent[64];
    struct dt_part part = whole(r), theirs[64];
    for (size_t bit = power / 2; bit > 0; bit /= 2, depth++) {
        bool upper = r->me & bit;
        struct dt_part mine = cut(r, part, 2, upper);
        theirs[depth] = cut(r, part, 2, !upper);
        sent[depth] = send(r, r->me ^ bit, theirs[depth], after);
        after = add(r, r->me ^ bit, mine, relay, after);
        relay += mine.count;
        part = mine;
    }
    after = finish(r, part, after);
    for (size_t bit = 1; bit < power; bit *= 2) {
        depth--;
        send(r, r->me ^ bit, part, after);
        size_t got = receive(r, r->me ^ bit, theirs[depth], sent[depth]);
        size_t both =
            dt_sched_join(r->plan->sched, r->plan->sched->noperations);
        dt_sched_after(r->plan->sched, both, got);
        dt_sched_after(r->plan->sched, both, after);
        after = both;
        if (theirs[depth].first < part.first)
            part.first = theirs[depth].first;
        part.count += theirs[depth].count;
    }
    give_back(r, power, after);
    return after;
}

/* In step s a node passes segment me - s to the next one and adds what it gets
 * to segment me - s - 1; then the complete segments go round once more. */
size_t dt_rail_ring(const struct dt_rail *r)
{
    size_t n = r->n, me = r->me, next = (me + 1) % n, prev = (me + n - 1) % n;
    size_t after = DT_OPERATION_NONE; /* what is sent next is there */
    for (size_t s = 0; s + 1 < n; s++) {
        struct dt_part to_add = cut(r, whole(r), n, (me + 2 * n - s - 1) % n);
        r->sent[s] =
            send(r, next, cut(r, whole(r), n, (me + n - s) % n), after);
        after = add(r, prev, to_add, to_add.first, DT_OPERATION_NONE);
    }
    r->got[n - 1] = after = finish(r, cut(r, whole(r), n, next), after);
    for (size_t s = 0; s + 1 < n; s++) {
        send(r, next, cut(r, whole(r), n, (me + n + 1 - s) % n), after);
        after =
            receive(r, prev, cut(r, whole(r), n, (me + n - s) % n), r->sent[s]);
        r->got[s] = after;
    }
    size_t end = dt_sched_join(r->plan->sched, r->plan->sched->noperations);
    for (size_t s = 0; s < n; s++)
        dt_sched_after(r->plan->sched, end, r->got[s]);
    return end;
}

/* One tree; node 0 is the root of both. */
static size_t up_and_down(const struct dt_rail *r, enum dt_tree_kind kind,
                          struct dt_part part, size_t relay)
{
    const struct dt_tree tree = dt_tree(kind, r->n, r->me);
    size_t after = DT_OPERATION_NONE;
    for (size_t i = 0; i < tree.nchildren; i++)
        after = add(r, tree.children[i], part, relay + i * part.count, after);
    if (r->me) {
        size_t sent = send(r, tree.parent, part, after);
        after = receive(r, tree.parent, part, sent);
    } else {
        after = finish(r, part, after);
    }
    for (size_t i = 0; i < tree.nchildren; i++)
        send(r, tree.children[i], part, after);
    return after;
}

size_t dt_rail_trees(const struct dt_rail *r)
{
    struct dt_part first = cut(r, whole(r), 2, 0),
                   second = cut(r, whole(r), 2, 1);
    size_t one = up_and_down(r, DT_TREE_FIRST, first, 0);
    size_t two = up_and_down(r, DT_TREE_SECOND, second, 2 * first.count);
    size_t both = dt_sched_join(r->plan->sched, r->plan->sched->noperations);
    dt_sched_after(r->plan->sched, both, one);
    dt_sched_after(r->plan->sched, both, two);
    return both;
}
