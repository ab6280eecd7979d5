/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* symbol-run.c - running schedules on symbols.
 *
 * Sends are read when they are delivered, or, if a coin says so, at once;
 * pieces are read where they are. Whatever writes to memory that somebody may
 * still read, or reads what is not there yet, is found. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-run.h"

void symbol_fail(struct machine *m, const char *format, ...)
{
    va_list ap;
    if (m->failed)
        return;
    m->failed = true;
    va_start(ap, format);
    vsnprintf(m->report->why, sizeof(m->report->why), format, ap);
    va_end(ap);
}

void *symbol_get(size_t n, size_t size)
{
    void *memory = calloc(n + 1, size);
    if (!memory)
        abort();
    return memory;
}

uint64_t symbol_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0x9e3779b97f4a7c15;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9;
    return x ^ x >> 32;
}

static uint64_t draw(struct machine *m)
{
    return symbol_mix(m->random += 0x9e3779b97f4a7c15);
}

/* ---- the order of things ---- */

static void push(struct machine *m, struct action action, bool late)
{
    struct queue *queue = &m->queues[late];
    if (queue->tail == queue->room) {
        queue->room = queue->room ? 2 * queue->room : 256;
        queue->items =
            reallocarray(queue->items, queue->room, sizeof(*queue->items));
        if (!queue->items)
            abort();
    }
    queue->items[queue->tail++] = action;
}

static bool pop(struct machine *m, struct action *action)
{
    struct queue *queue = &m->queues[0];
    if (queue->head == queue->tail)
        queue = &m->queues[1];
    if (queue->head == queue->tail)
        return false;
    if (m->c->order == SYMBOL_FIRST) {
        *action = queue->items[queue->head++];
    } else {
        size_t n = queue->tail - queue->head;
        bool last = m->c->order == SYMBOL_LAST ||
                    (m->c->order == SYMBOL_LATE_READ && m->c->seed % 2);
        size_t i = queue->head + (last ? n - 1 : draw(m) % n);
        *action = queue->items[i];
        queue->items[i] = queue->items[--queue->tail];
    }
    if (queue->head == queue->tail)
        queue->head = queue->tail = 0;
    return true;
}

static bool is_late(const struct machine *m, size_t rank,
                    enum dt_operation_kind kind)
{
    switch (m->c->order) {
    case SYMBOL_LATE_READ:
        return kind == DT_OPERATION_REDUCE_ROUND || kind == DT_OPERATION_FETCH;
    case SYMBOL_LATE_RANK:
        return rank == m->victim;
    case SYMBOL_LATE_POST:
        return kind == DT_OPERATION_POST;
    default:
        return false;
    }
}

static void start_soon(struct machine *m, size_t rank, size_t operation)
{
    push(m, (struct action){rank, operation},
         is_late(m, rank, m->ranks[rank].sched.operations[operation].kind));
}

/* ---- arithmetic ---- */

static struct cell combine(struct machine *m, struct cell a, struct cell b)
{
    if (a.mask & b.mask)
        symbol_fail(m, "a contribution is added twice: %016llx and %016llx",
                    (unsigned long long)a.mask, (unsigned long long)b.mask);
    if (a.index != b.index)
        symbol_fail(m, "element %u is added to %u", a.index, b.index);
    if (a.factor != b.factor || a.divided != b.divided)
        symbol_fail(m, "what is scaled is added to what is not");
    a.mask |= b.mask;
    a.hash = symbol_mix(a.hash * 3 + symbol_mix(b.hash));
    return a;
}

static void scale(struct cell *cell, double factor)
{
    cell->factor *= factor;
    cell->hash = symbol_mix(cell->hash + 7) + (uint64_t)(factor * 1024);
}

static void compute(struct machine *m, size_t rank,
                    const struct dt_operation *operation)
{
    bool divide = operation->kind == DT_OPERATION_DIVIDE;
    bool add = operation->kind == DT_OPERATION_REDUCE;
    struct range dst = symbol_at(m, rank, operation->dst, operation->len);
    struct range a =
        divide ? dst : symbol_at(m, rank, operation->a, operation->len);
    struct range b = add ? symbol_at(m, rank, operation->b, operation->len) : a;
    symbol_read(m, rank, a);
    symbol_read(m, rank, b);
    symbol_write(m, rank, dst, DT_OPERATION_NONE);
    for (size_t i = 0; i < dst.count && !m->failed; i++) {
        struct cell cell = a.memory->cells[a.first + i];
        if (add)
            cell = combine(m, cell, b.memory->cells[b.first + i]);
        else if (operation->kind == DT_OPERATION_SCALE)
            scale(&cell, operation->factor);
        else if (divide)
            cell.divided++;
        dst.memory->cells[dst.first + i] = cell;
    }
}

/* ---- the end of an operation ---- */

static void wake(struct machine *m, size_t rank, size_t round)
{
    struct rank *r = &m->ranks[rank];
    size_t operation = r->waiting[round];
    r->waiting[round] = DT_OPERATION_NONE;
    while (operation != DT_OPERATION_NONE) {
        size_t next = r->next_waiting[operation];
        start_soon(m, rank, operation);
        operation = next;
    }
}

static void hold(struct machine *m, size_t rank, size_t operation)
{
    struct rank *r = &m->ranks[rank];
    uint32_t round = r->sched.operations[operation].round;
    r->next_waiting[operation] = r->waiting[round];
    r->waiting[round] = operation;
}

static void pass(struct machine *m, size_t rank)
{
    struct rank *r = &m->ranks[rank];
    const struct dt_group *node = dt_layout_node(&r->layout);
    size_t before = r->passed;
    while (r->passed < r->sched.rounds && !r->reads[r->passed])
        r->passed++;
    for (size_t round = before + SYMBOL_ROOM;
         round < r->passed + SYMBOL_ROOM && round < r->sched.rounds; round++)
        for (size_t i = 0; i < node->size; i++)
            wake(m, node->ranks[i], round);
}

static void finish(struct machine *m, size_t rank, size_t number)
{
    struct rank *r = &m->ranks[rank];
    const struct dt_operation *operation = &r->sched.operations[number];
    if (r->done[number])
        symbol_fail(m, "rank %zu: operation %zu ends twice", rank, number);
    r->done[number] = true;
    r->left--;
    for (size_t e = operation->edges; e != DT_OPERATION_NONE;
         e = r->sched.edges[e].next)
        if (--r->pending[r->sched.edges[e].operation] == 0)
            start_soon(m, rank, r->sched.edges[e].operation);
    if (operation->kind == DT_OPERATION_REDUCE_ROUND ||
        operation->kind == DT_OPERATION_FETCH) {
        r->reads[operation->round]--;
        pass(m, rank);
    }
}

/* ---- rounds ---- */

static bool post(struct machine *m, size_t rank,
                 const struct dt_operation *operation)
{
    struct rank *r = &m->ranks[rank];
    const struct dt_group *node = dt_layout_node(&r->layout);
    for (size_t i = 0; i < node->size; i++)
        if (m->ranks[node->ranks[i]].passed + SYMBOL_ROOM <= operation->round)
            return false;
    struct posted *posted = &r->posts[operation->round];
    if (posted->there)
        symbol_fail(m, "rank %zu posts twice in round %u", rank,
                    operation->round);
    if (operation->len > m->c->piece_max)
        symbol_fail(m, "rank %zu posts %zu bytes", rank, operation->len);
    struct range range = symbol_at(m, rank, operation->a, operation->len);
    *posted = (struct posted){true, range, operation->offset / m->elem,
                              operation->hole / m->elem};
    if (posted->hole + posted->hole_count > range.count) {
        symbol_fail(m, "rank %zu: a hole beyond its piece", rank);
        return true;
    }
    struct range rest = range;
    rest.count = posted->hole;
    symbol_read(m, rank, rest);
    rest.first += posted->hole + posted->hole_count;
    rest.count = range.count - posted->hole - posted->hole_count;
    symbol_read(m, rank, rest);
    for (size_t i = 0; i < node->size; i++)
        wake(m, node->ranks[i], operation->round);
    return true;
}

static bool is_posted(struct machine *m, size_t rank, uint32_t round)
{
    if (round >= m->ranks[rank].sched.rounds) {
        symbol_fail(m, "rank %zu has no round %u", rank, round);
        return false;
    }
    return m->ranks[rank].posts[round].there;
}

static bool fold(struct machine *m, size_t rank,
                 const struct dt_operation *operation)
{
    struct rank *r = &m->ranks[rank];
    const struct dt_group *node = dt_layout_node(&r->layout);
    struct range dst = symbol_at(m, rank, operation->dst, operation->len);
    for (size_t i = 0; i < node->size; i++)
        if (i != node->index && !is_posted(m, node->ranks[i], operation->round))
            return false;
    struct cell *sum = symbol_get(dst.count, sizeof(*sum));
    for (size_t i = 0; i < node->size; i++) {
        size_t peer = node->ranks[i];
        struct range term = symbol_at(m, rank, operation->a, operation->len);
        if (i != node->index)
            term = symbol_part(m, &m->ranks[peer].posts[operation->round],
                               operation);
        symbol_read(m, peer, term);
        for (size_t k = 0; k < dst.count && !m->failed; k++)
            sum[k] = i ? combine(m, sum[k], term.memory->cells[term.first + k])
                       : term.memory->cells[term.first + k];
    }
    symbol_write(m, rank, dst, DT_OPERATION_NONE);
    for (size_t k = 0; k < dst.count; k++) {
        if (operation->factor != 1)
            scale(&sum[k], operation->factor);
        dst.memory->cells[dst.first + k] = sum[k];
    }
    free(sum);
    return true;
}

static bool fetch(struct machine *m, size_t rank,
                  const struct dt_operation *operation)
{
    const struct dt_group *node = dt_layout_node(&m->ranks[rank].layout);
    if (operation->peer >= node->size) {
        symbol_fail(m, "rank %zu fetches from local rank %zu", rank,
                    operation->peer);
        return true;
    }
    size_t peer = node->ranks[operation->peer];
    if (!is_posted(m, peer, operation->round))
        return false;
    if (!operation->len)
        return true;
    struct range a =
        symbol_part(m, &m->ranks[peer].posts[operation->round], operation);
    struct range dst = symbol_at(m, rank, operation->dst, operation->len);
    symbol_read(m, peer, a);
    symbol_write(m, rank, dst, DT_OPERATION_NONE);
    for (size_t i = 0; i < dst.count && !m->failed; i++)
        dst.memory->cells[dst.first + i] = a.memory->cells[a.first + i];
    return true;
}

/* ---- messages ---- */

static size_t *find(struct machine *m, size_t from, size_t to, size_t slot)
{
    size_t i = symbol_mix(symbol_mix(from * 64 + to) + slot) % m->table_size;
    for (; m->table[i]; i = (i + 1) % m->table_size) {
        const struct message *message = &m->messages[m->table[i] - 1];
        if (message->from == from && message->to == to && message->slot == slot)
            break;
    }
    return &m->table[i];
}

size_t symbol_message(struct machine *m, size_t rank,
                      const struct dt_operation *operation)
{
    bool send = operation->kind == DT_OPERATION_SEND;
    size_t *entry = find(m, send ? rank : operation->peer,
                         send ? operation->peer : rank, operation->slot);
    if (!*entry) {
        m->messages[m->nmessages] =
            (struct message){.from = send ? rank : operation->peer,
                             .to = send ? operation->peer : rank,
                             .slot = operation->slot,
                             .send = DT_OPERATION_NONE,
                             .recv = DT_OPERATION_NONE};
        *entry = ++m->nmessages;
    }
    return *entry - 1;
}

static void start_message(struct machine *m, size_t rank, size_t number)
{
    const struct dt_operation *operation =
        &m->ranks[rank].sched.operations[number];
    size_t i = symbol_message(m, rank, operation);
    struct message *message = &m->messages[i];
    struct rank *r = &m->ranks[rank];
    if (operation->kind == DT_OPERATION_SEND) {
        struct range range = symbol_at(m, rank, operation->a, operation->len);
        symbol_read(m, rank, range);
        message->sent = true;
        message->eager = m->c->order != SYMBOL_FIRST && draw(m) % 2;
        if (message->eager) {
            message->copy = symbol_get(range.count, sizeof(*message->copy));
            memcpy(message->copy, range.memory->cells + range.first,
                   range.count * sizeof(*message->copy));
        } else {
            r->flight[r->nflight++] = i;
        }
    } else {
        symbol_write(m, rank,
                     symbol_at(m, rank, operation->dst, operation->len), i);
        message->wanted = true;
        r->flight[r->nflight++] = i;
    }
    if (message->sent && message->wanted)
        push(m, (struct action){i, DT_OPERATION_NONE},
             m->c->order == SYMBOL_LATE_NET);
    if (message->eager && operation->kind == DT_OPERATION_SEND)
        finish(m, rank, number);
}

static void land(struct rank *r, size_t message)
{
    for (size_t i = 0; i < r->nflight; i++)
        if (r->flight[i] == message)
            r->flight[i] = r->flight[--r->nflight];
}

static void deliver(struct machine *m, size_t i)
{
    struct message *message = &m->messages[i];
    struct range from = symbol_sending(m, message),
                 to = symbol_receiving(m, message);
    const struct cell *cells =
        message->eager ? message->copy : from.memory->cells + from.first;
    symbol_write(m, message->to, to, i);
    if (to.count && !m->failed)
        memcpy(to.memory->cells + to.first, cells, to.count * sizeof(*cells));
    land(&m->ranks[message->to], i);
    land(&m->ranks[message->from], i);
    if (!message->eager)
        finish(m, message->from, message->send);
    finish(m, message->to, message->recv);
}

/* ---- running ---- */

static void start(struct machine *m, size_t rank, size_t number)
{
    const struct dt_operation *operation =
        &m->ranks[rank].sched.operations[number];
    bool done = true;
    switch (operation->kind) {
    case DT_OPERATION_SEND:
    case DT_OPERATION_RECV:
        start_message(m, rank, number);
        return;
    case DT_OPERATION_POST:
        done = post(m, rank, operation);
        break;
    case DT_OPERATION_REDUCE_ROUND:
        done = fold(m, rank, operation);
        break;
    case DT_OPERATION_FETCH:
        done = fetch(m, rank, operation);
        break;
    case DT_OPERATION_JOIN:
        break;
    default:
        compute(m, rank, operation);
    }
    if (done)
        finish(m, rank, number);
    else
        hold(m, rank, number);
}

void symbol_run_all(struct machine *m)
{
    struct action action;
    for (size_t i = 0; i < m->size; i++) {
        struct rank *r = &m->ranks[i];
        for (size_t t = 0; t < r->sched.noperations; t++)
            if (!r->pending[t])
                start_soon(m, i, t);
        pass(m, i);
    }
    while (!m->failed && pop(m, &action)) {
        if (action.operation == DT_OPERATION_NONE)
            deliver(m, action.rank);
        else
            start(m, action.rank, action.operation);
    }
    for (size_t i = 0; i < m->size; i++)
        if (m->ranks[i].left)
            symbol_fail(m, "rank %zu never ends: %zu operations are left", i,
                        m->ranks[i].left);
}
