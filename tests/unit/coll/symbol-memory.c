/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* symbol-memory.c - who may read and write what, and when. */
#include "symbol-run.h"

struct range symbol_at(struct machine *m, size_t rank, struct dt_ref ref,
                       size_t len)
{
    struct rank *r = &m->ranks[rank];
    struct range range = {&r->scratch, 0, r->scratch.n};
    if (ref.space == DT_SPACE_SEND)
        range = r->send;
    else if (ref.space == DT_SPACE_RECV)
        range = r->recv;
    if (ref.offset % m->elem || len % m->elem ||
        ref.offset / m->elem > range.count ||
        len / m->elem > range.count - ref.offset / m->elem) {
        symbol_fail(m, "rank %zu: %zu bytes at %zu of space %d, which has %zu",
                    rank, len, ref.offset, (int)ref.space,
                    range.count * m->elem);
        return (struct range){&r->scratch, 0, 0};
    }
    range.first += ref.offset / m->elem;
    range.count = len / m->elem;
    return range;
}

static bool meet(struct range a, struct range b)
{
    return a.memory == b.memory && a.count && b.count &&
           a.first < b.first + b.count && b.first < a.first + a.count;
}

struct range symbol_sending(struct machine *m, const struct message *message)
{
    const struct dt_operation *operation =
        &m->ranks[message->from].sched.operations[message->send];
    return symbol_at(m, message->from, operation->a, operation->len);
}

struct range symbol_receiving(struct machine *m, const struct message *message)
{
    const struct dt_operation *operation =
        &m->ranks[message->to].sched.operations[message->recv];
    return symbol_at(m, message->to, operation->dst, operation->len);
}

/* Nothing may be on its way into what is read or written. */
void symbol_quiet(struct machine *m, size_t rank, struct range range,
                  size_t but)
{
    struct rank *r = &m->ranks[rank];
    for (size_t i = 0; i < r->nflight; i++) {
        const struct message *message = &m->messages[r->flight[i]];
        if (message->to == rank && r->flight[i] != but && message->wanted &&
            meet(range, symbol_receiving(m, message)))
            symbol_fail(m, "rank %zu touches what rank %zu is sending it", rank,
                        message->from);
    }
}

void symbol_read(struct machine *m, size_t rank, struct range range)
{
    symbol_quiet(m, rank, range, DT_OPERATION_NONE);
    for (size_t i = 0; i < range.count; i++)
        if (!range.memory->cells[range.first + i].mask) {
            symbol_fail(m, "rank %zu reads what was never written", rank);
            return;
        }
}

/* What a FOLD or FETCH reads of a piece. */
struct range symbol_part(struct machine *m, const struct posted *post,
                         const struct dt_operation *operation)
{
    struct range range = post->range;
    size_t first = operation->offset / m->elem,
           count = operation->len / m->elem;
    if (first > range.count || count > range.count - first) {
        symbol_fail(m, "a piece of %zu elements is read at %zu, %zu of them",
                    range.count, first, count);
        return (struct range){range.memory, 0, 0};
    }
    if (count && post->hole_count && first < post->hole + post->hole_count &&
        post->hole < first + count)
        symbol_fail(m, "a hole is read");
    range.first += first;
    range.count = count;
    return range;
}

/* Who may still read what rank has posted, of this range? */
static void check_posts(struct machine *m, size_t rank, struct range range)
{
    struct rank *r = &m->ranks[rank];
    const struct dt_group *node = dt_layout_node(&r->layout);
    size_t low = SIZE_MAX;
    for (size_t i = 0; i < node->size; i++)
        if (m->ranks[node->ranks[i]].passed < low)
            low = m->ranks[node->ranks[i]].passed;
    for (size_t round = low;
         round < r->sched.rounds && round < low + SYMBOL_ROOM; round++) {
        const struct posted *post = &r->posts[round];
        if (!post->there || !meet(post->range, range))
            continue;
        for (size_t i = 0; i < node->size; i++) {
            const struct rank *peer = &m->ranks[node->ranks[i]];
            if (i == node->index)
                continue;
            for (size_t t = peer->first_read[round]; t != DT_OPERATION_NONE;
                 t = peer->next_in_round[t]) {
                const struct dt_operation *operation =
                    &peer->sched.operations[t];
                if (peer->done[t] || (operation->kind == DT_OPERATION_FETCH &&
                                      operation->peer != node->index))
                    continue;
                if (meet(range, symbol_part(m, post, operation)))
                    symbol_fail(
                        m,
                        "rank %zu writes what rank %zu has yet to read, "
                        "in round %zu",
                        rank, node->ranks[i], round);
            }
        }
    }
}

void symbol_write(struct machine *m, size_t rank, struct range range,
                  size_t message)
{
    struct rank *r = &m->ranks[rank];
    symbol_quiet(m, rank, range, message);
    for (size_t i = 0; i < r->nflight; i++) {
        const struct message *other = &m->messages[r->flight[i]];
        if (other->from == rank && other->sent && !other->eager &&
            meet(range, symbol_sending(m, other)))
            symbol_fail(m, "rank %zu writes what it is sending to rank %zu",
                        rank, other->to);
    }
    check_posts(m, rank, range);
}
