/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* symbol.c - setting up ranks and looking at what they have in the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-run.h"

/* ---- what a collective gives and takes ---- */

static size_t count_of(const struct symbol_case *c, size_t from, size_t to)
{
    const struct dt_shape *shape = &c->shape;
    switch (shape->coll) {
    case DT_COLL_ALLGATHER:
        return shape->sendcounts ? shape->sendcounts[from] : shape->count;
    case DT_COLL_REDUCE_SCATTER:
        return shape->recvcounts ? shape->recvcounts[to] : shape->count;
    case DT_COLL_ALLTOALL:
        return c->matrix ? c->matrix[from * c->size + to] : shape->count;
    default:
        return shape->count;
    }
}

/* Where block r lies in the larger of the buffers of rank me. */
static size_t place_of(const struct symbol_case *c, size_t me, size_t r,
                       bool send)
{
    size_t place = 0;
    if (c->shape.coll == DT_COLL_ALLGATHER && c->shape.recvdispls)
        return c->shape.recvdispls[r];
    for (size_t i = 0; i < r; i++)
        place += send ? count_of(c, me, i) : count_of(c, i, me);
    return place;
}

/* Elements of all blocks, of a buffer that has some. */
static size_t all_blocks(const struct symbol_case *c, size_t me, bool send)
{
    size_t end = 0;
    for (size_t r = 0; r < c->size; r++) {
        size_t next = place_of(c, me, r, send) +
                      (send ? count_of(c, me, r) : count_of(c, r, me));
        end = next > end ? next : end;
    }
    return end;
}

/* Elements of the send and receive buffers, and where the smaller one lies in
 * the larger one when in place. */
struct sizes {
    size_t send, recv, offset;
};

static struct sizes sizes_of(const struct symbol_case *c, size_t me)
{
    bool root = me == c->shape.root;
    size_t count = count_of(c, me, me), at;
    switch (c->shape.coll) {
    case DT_COLL_ALLGATHER:
        at = place_of(c, me, me, false);
        return (struct sizes){count, all_blocks(c, me, false), at};
    case DT_COLL_REDUCE_SCATTER:
        at = place_of(c, me, me, true);
        return (struct sizes){all_blocks(c, me, true), count, at};
    case DT_COLL_ALLTOALL:
        return (struct sizes){all_blocks(c, me, true), all_blocks(c, me, false),
                              0};
    case DT_COLL_GATHER:
        return (struct sizes){count, root ? c->size * count : 0, me * count};
    case DT_COLL_SCATTER:
        return (struct sizes){root ? c->size * count : 0, count, me * count};
    case DT_COLL_REDUCE:
        return (struct sizes){count, root ? count : 0, 0};
    default:
        return (struct sizes){count, count, 0};
    }
}

static bool in_place(const struct symbol_case *c, size_t me)
{
    bool wanted =
        c->place == SYMBOL_IN_PLACE || (c->place == SYMBOL_MIXED && me % 2);
    switch (c->shape.coll) {
    case DT_COLL_BCAST:
        return true;
    case DT_COLL_ALLTOALL:
        return false;
    case DT_COLL_REDUCE:
    case DT_COLL_GATHER:
    case DT_COLL_SCATTER:
        return wanted && me == c->shape.root;
    default:
        return wanted;
    }
}

static struct cell first_cell(size_t rank, size_t i)
{
    return (struct cell){.mask = (uint64_t)1 << rank,
                         .hash = symbol_mix(rank * 1000003 + i),
                         .index = (uint32_t)i,
                         .factor = 1};
}

static struct memory memory(size_t n)
{
    return (struct memory){symbol_get(n, sizeof(struct cell)), n};
}

static void fill(const struct symbol_case *c, struct rank *r, size_t me)
{
    struct sizes sizes = sizes_of(c, me);
    if (in_place(c, me)) {
        size_t larger = sizes.send > sizes.recv ? sizes.send : sizes.recv;
        r->user = memory(larger);
        r->send = (struct range){&r->user, 0, sizes.send};
        r->recv = (struct range){&r->user, 0, sizes.recv};
        *(sizes.send < sizes.recv ? &r->send.first : &r->recv.first) =
            sizes.send == sizes.recv ? 0 : sizes.offset;
    } else {
        r->user = memory(sizes.send);
        r->other = memory(sizes.recv);
        r->send = (struct range){&r->user, 0, sizes.send};
        r->recv = (struct range){&r->other, 0, sizes.recv};
    }
    if (c->shape.coll != DT_COLL_BCAST || me == c->shape.root)
        for (size_t i = 0; i < sizes.send; i++)
            r->user.cells[r->send.first + i] = first_cell(me, i);
}

/* ---- setting up ---- */

static void count_blocks(const struct symbol_case *c, struct rank *r, size_t me)
{
    if (!c->matrix)
        return;
    r->counts = symbol_get(4 * c->size, sizeof(*r->counts));
    for (size_t i = 0; i < c->size; i++) {
        r->counts[i] = count_of(c, me, i);
        r->counts[c->size + i] = place_of(c, me, i, true);
        r->counts[2 * c->size + i] = count_of(c, i, me);
        r->counts[3 * c->size + i] = place_of(c, me, i, false);
    }
    r->shape.sendcounts = r->counts;
    r->shape.senddispls = r->counts + c->size;
    r->shape.recvcounts = r->counts + 2 * c->size;
    r->shape.recvdispls = r->counts + 3 * c->size;
}

static bool build(struct machine *m, size_t me)
{
    const struct symbol_case *c = m->c;
    struct rank *r = &m->ranks[me];
    r->shape = c->shape;
    r->shape.in_place = in_place(c, me);
    count_blocks(c, r, me);
    if (dt_layout_init(&r->layout, me, c->size, c->node_of, NULL))
        abort();
    for (size_t i = 0; i < r->layout.nnodes; i++)
        if (r->layout.nodes[i].size > 1)
            r->layout.piece_max = c->piece_max;
    const struct dt_plan plan = {&r->sched, &r->layout, &r->shape,
                                 &c->tune,  c->forced,  NULL};
    const char *name = dt_algorithm_name(&plan);
    if (!me)
        snprintf(m->report->name, sizeof(m->report->name), "%s", name);
    else if (strcmp(m->report->name, name))
        symbol_fail(m, "rank %zu takes %s, rank 0 %s", me, name,
                    m->report->name);
    if (c->forced && strcmp(c->forced, name))
        return false;
    dt_sched_init(&r->sched, c->size);
    dt_algorithm_build(&plan);
    struct dt_error err = {""};
    if (dt_sched_finish(&r->sched, &err) != DT_SUCCESS)
        symbol_fail(m, "rank %zu: %s", me, err.text);
    if (r->sched.noperations > m->report->operations)
        m->report->operations = r->sched.noperations;
    fill(c, r, me);
    r->scratch = memory(r->sched.scratch / m->elem);
    return true;
}

/* What runs needs of a schedule that is complete. */
static void load(struct machine *m, size_t me)
{
    struct rank *r = &m->ranks[me];
    size_t n = r->sched.noperations, rounds = r->sched.rounds;
    r->pending = symbol_get(n, sizeof(*r->pending));
    r->done = symbol_get(n, sizeof(*r->done));
    r->next_in_round = symbol_get(n, sizeof(*r->next_in_round));
    r->next_waiting = symbol_get(n, sizeof(*r->next_waiting));
    r->flight = symbol_get(n, sizeof(*r->flight));
    r->posts = symbol_get(rounds, sizeof(*r->posts));
    r->reads = symbol_get(rounds, sizeof(*r->reads));
    r->first_read = symbol_get(rounds, sizeof(*r->first_read));
    r->waiting = symbol_get(rounds, sizeof(*r->waiting));
    r->left = n;
    for (size_t i = 0; i < rounds; i++)
        r->first_read[i] = r->waiting[i] = DT_OPERATION_NONE;
    for (size_t i = 0; i < n; i++) {
        const struct dt_operation *operation = &r->sched.operations[i];
        r->pending[i] = operation->ndeps;
        if (operation->kind == DT_OPERATION_REDUCE_ROUND ||
            operation->kind == DT_OPERATION_FETCH) {
            r->reads[operation->round]++;
            r->next_in_round[i] = r->first_read[operation->round];
            r->first_read[operation->round] = i;
        }
        if (operation->kind == DT_OPERATION_SEND)
            m->messages[symbol_message(m, me, operation)].send = i;
        if (operation->kind == DT_OPERATION_RECV)
            m->messages[symbol_message(m, me, operation)].recv = i;
    }
}

static void load_all(struct machine *m)
{
    size_t most = 0;
    for (size_t i = 0; i < m->size; i++)
        most += m->ranks[i].sched.nmessages;
    m->messages = symbol_get(most, sizeof(*m->messages));
    m->table_size = 2 * most + 1;
    m->table = symbol_get(m->table_size, sizeof(*m->table));
    for (size_t i = 0; i < m->size; i++)
        load(m, i);
    for (size_t i = 0; i < m->size; i++) {
        const struct rank *r = &m->ranks[i];
        size_t first = dt_layout_node(&r->layout)->ranks[0];
        if (r->sched.rounds != m->ranks[first].sched.rounds)
            symbol_fail(m, "rank %zu has %u rounds, rank %zu %u", i,
                        r->sched.rounds, first, m->ranks[first].sched.rounds);
        if (r->sched.rounds && dt_layout_node(&r->layout)->size == 1)
            symbol_fail(m, "rank %zu is alone and has rounds", i);
    }
}

static void check_messages(struct machine *m)
{
    size_t *wire = symbol_get(m->size, sizeof(*wire));
    for (size_t i = 0; i < m->nmessages && !m->failed; i++) {
        const struct message *x = &m->messages[i];
        if (x->send == DT_OPERATION_NONE || x->recv == DT_OPERATION_NONE) {
            symbol_fail(m, "message %zu from rank %zu to %zu: only one knows",
                        x->slot, x->from, x->to);
            break;
        }
        const struct rank *from = &m->ranks[x->from], *to = &m->ranks[x->to];
        size_t len = from->sched.operations[x->send].len;
        if (len != to->sched.operations[x->recv].len)
            symbol_fail(m, "message %zu from rank %zu to %zu: %zu bytes or %zu",
                        x->slot, x->from, x->to, len,
                        to->sched.operations[x->recv].len);
        if (x->from == x->to)
            symbol_fail(m, "rank %zu sends to itself", x->from);
        if (from->layout.node != to->layout.node)
            wire[from->layout.node] += len;
    }
    for (size_t i = 0; i < m->size; i++)
        if (wire[i] > m->report->wire)
            m->report->wire = wire[i];
    free(wire);
}

/* ---- the end ---- */

static uint64_t everybody(size_t size)
{
    return size == 64 ? UINT64_MAX : ((uint64_t)1 << size) - 1;
}

/* count elements at first of the receive buffer of me: those from index on of
 * the ranks in mask. */
static void expect(struct machine *m, size_t me, size_t first, size_t count,
                   uint64_t mask, size_t index)
{
    const struct rank *r = &m->ranks[me];
    bool reduced = mask == everybody(m->size);
    const struct dt_shape *shape = &m->c->shape;
    bool scales = shape->coll == DT_COLL_ALLREDUCE;
    bool divides =
        shape->op == DT_OP_AVG && (scales || shape->coll == DT_COLL_REDUCE ||
                                   shape->coll == DT_COLL_REDUCE_SCATTER);
    double factor = scales ? shape->prescale * shape->postscale : 1;
    for (size_t i = 0; i < count && !m->failed; i++) {
        const struct cell *cell =
            &r->recv.memory->cells[r->recv.first + first + i];
        if (cell->mask != mask || cell->index != index + i)
            symbol_fail(m,
                        "rank %zu has at %zu element %u of %016llx, not "
                        "%zu of %016llx",
                        me, first + i, cell->index,
                        (unsigned long long)cell->mask, index + i,
                        (unsigned long long)mask);
        if (fabs(cell->factor - factor) > 1e-9 || cell->divided != divides)
            symbol_fail(m, "rank %zu: element %zu times %g, divided %u times",
                        me, first + i, cell->factor, cell->divided);
        if (reduced && scales) {
            const struct rank *other = &m->ranks[0];
            if (cell->hash !=
                other->recv.memory->cells[other->recv.first + i].hash)
                symbol_fail(m, "rank %zu: element %zu in another order", me, i);
        }
        m->report->hash = symbol_mix(m->report->hash * 3 + cell->hash);
    }
}

static void check_result(struct machine *m, size_t me)
{
    const struct symbol_case *c = m->c;
    size_t count = c->shape.count, root = c->shape.root;
    uint64_t all = everybody(m->size), one = 1;
    switch (c->shape.coll) {
    case DT_COLL_ALLREDUCE:
        expect(m, me, 0, count, all, 0);
        break;
    case DT_COLL_REDUCE:
        expect(m, me, 0, me == root ? count : 0, all, 0);
        break;
    case DT_COLL_BCAST:
        expect(m, me, 0, count, one << root, 0);
        break;
    case DT_COLL_REDUCE_SCATTER:
        expect(m, me, 0, count_of(c, me, me), all, place_of(c, me, me, true));
        break;
    case DT_COLL_ALLGATHER:
        for (size_t r = 0; r < m->size; r++)
            expect(m, me, place_of(c, me, r, false), count_of(c, r, me),
                   one << r, 0);
        break;
    case DT_COLL_ALLTOALL:
        for (size_t r = 0; r < m->size; r++)
            expect(m, me, place_of(c, me, r, false), count_of(c, r, me),
                   one << r, place_of(c, r, me, true));
        break;
    case DT_COLL_GATHER:
        for (size_t r = 0; me == root && r < m->size; r++)
            expect(m, me, r * count, count, one << r, 0);
        break;
    case DT_COLL_SCATTER:
        expect(m, me, 0, count, one << root, me * count);
        break;
    default:
        break;
    }
}

static void check_sent(struct machine *m, size_t me)
{
    struct rank *r = &m->ranks[me];
    for (size_t i = 0; !r->shape.in_place && i < r->send.count; i++)
        if (r->user.cells[i].hash != first_cell(me, i).hash)
            symbol_fail(m, "rank %zu: its send buffer has changed", me);
}

static void fini(struct machine *m)
{
    for (size_t i = 0; i < m->size; i++) {
        struct rank *r = &m->ranks[i];
        dt_sched_fini(&r->sched);
        dt_layout_fini(&r->layout);
        free(r->counts);
        free(r->user.cells);
        free(r->other.cells);
        free(r->scratch.cells);
        free(r->pending);
        free(r->done);
        free(r->next_in_round);
        free(r->next_waiting);
        free(r->flight);
        free(r->posts);
        free(r->reads);
        free(r->first_read);
        free(r->waiting);
    }
    for (size_t i = 0; i < m->nmessages; i++)
        free(m->messages[i].copy);
    free(m->messages);
    free(m->table);
    free(m->ranks);
    free(m->queues[0].items);
    free(m->queues[1].items);
}

bool symbol_run(const struct symbol_case *c, struct symbol_report *report)
{
    struct machine m = {.c = c, .report = report, .size = c->size};
    *report = (struct symbol_report){.serves = true};
    m.elem = dt_dtype_size(c->shape.dtype);
    m.random = symbol_mix(c->seed + 1);
    m.victim = symbol_mix(c->seed + 17) % c->size;
    m.ranks = symbol_get(c->size, sizeof(*m.ranks));
    for (size_t i = 0; i < c->size && report->serves && !m.failed; i++)
        report->serves = build(&m, i);
    if (report->serves && !m.failed)
        load_all(&m);
    if (report->serves && !m.failed)
        check_messages(&m);
    if (report->serves && !m.failed)
        symbol_run_all(&m);
    for (size_t i = 0; i < c->size && report->serves && !m.failed; i++) {
        check_result(&m, i);
        check_sent(&m, i);
    }
    fini(&m);
    return !m.failed;
}
