/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* decision.c - the decisions that the root broadcasts. */
#include "membership/membership_state.h"

static size_t length(const struct decision *decision)
{
    struct dt_cursor body = dt_frame_body(decision->bytes);
    return (size_t)(body.end - body.at);
}

bool dt_decision_is_complete(const struct decision *decision)
{
    return decision->bytes && !decision->bytes->failed &&
           length(decision) == decision->length;
}

static void drop_decision(struct decision **at)
{
    struct decision *decision = *at;
    *at = decision->next;
    dt_frame_unref(decision->bytes);
    free(decision);
}

/* Can it not be accepted any more? */
static bool is_void(const struct dt_membership *m, struct decided id)
{
    return id.epoch <= m->last.epoch ||
           (m->held && id.term < m->term && !dt_decided_same(id, m->hold));
}

static void drop_void(struct dt_membership *m)
{
    for (struct decision **at = &m->decisions; *at;)
        if (is_void(m, (*at)->id))
            drop_decision(at);
        else
            at = &(*at)->next;
}

struct member {
    uint32_t rank, incarnation;
    uint64_t number;
    const void *card;
    size_t len;
};

static bool next_member(struct dt_cursor *from, struct member *member)
{
    member->rank = (uint32_t)dt_cursor_uint(from, 4);
    member->incarnation = (uint32_t)dt_cursor_uint(from, 4);
    member->number = dt_cursor_uint(from, 8);
    return dt_cursor_blob(from, &member->card, &member->len);
}

static bool is_sane(const struct dt_membership *m, struct dt_cursor from)
{
    size_t count = dt_cursor_uint(&from, 4), least = 0;
    for (size_t i = 0; i < count; i++) {
        struct member member;
        if (!next_member(&from, &member) || member.rank < least ||
            member.rank >= m->map->ranks)
            return false;
        least = (size_t)member.rank + 1;
    }
    return !from.failed && from.at == from.end;
}

/* Note the members and write the result, but for the epoch; returns the
 * requests that it answers, unlinked. */
static struct request *note_members(struct dt_membership *m,
                                    struct dt_cursor from,
                                    struct dt_frame *result)
{
    struct request *first = NULL, **last = &first, **at;
    size_t count = dt_cursor_uint(&from, 4);
    dt_frame_uint(result, 4, count);
    memset(m->member, 0, m->map->ranks * sizeof(*m->member));
    for (struct member one; count > 0 && next_member(&from, &one); count--) {
        const struct arrival *arrival = m->arrival[one.rank];
        m->member[one.rank] = one.incarnation + 1;
        dt_frame_uint(result, 4, one.rank);
        dt_frame_uint(result, 4, one.incarnation);
        dt_frame_blob(result, one.card, one.len);
        m->number[one.rank] = one.number;
        if (arrival && arrival->incarnation == one.incarnation &&
            arrival->number <= one.number)
            dt_arrival_drop(m, one.rank, DT_SUCCESS, "");
        at = dt_request_find(m, one.number);
        if (m->map->node_of[one.rank] == m->self && *at) {
            *last = dt_request_unlink(at);
            last = &(*last)->next;
            *last = NULL;
        }
    }
    return first;
}

static void accept(struct dt_membership *m, const struct decision *decision)
{
    struct dt_frame *result = dt_frame_begin(DT_WIRE_ANSWER);
    m->last = decision->id;
    m->changed = true;
    dt_frame_uint(result, 8, m->last.epoch);
    struct request *first =
        note_members(m, dt_frame_body(decision->bytes), result);
    bool good = dt_frame_end(&result, NULL) == DT_SUCCESS;
    if (!good)
        dt_mesh_no_memory(m->mesh);
    drop_void(m); /* this one, too */
    for (struct request *next; first; first = next) {
        struct dt_cursor body = {0};
        next = first->next;
        if (good)
            body = dt_frame_body(result);
        dt_request_finish(first, good ? DT_SUCCESS : DT_ERR_NO_MEMORY, body.at,
                          (size_t)(body.end - body.at));
    }
    dt_frame_unref(result);
}

/* Is it known to hold? */
static bool holds(const struct dt_membership *m, struct decided id)
{
    return m->held && (id.term == m->term || dt_decided_same(id, m->hold));
}

static void accept_all(struct dt_membership *m)
{
    struct decision *next;
    do {
        next = NULL;
        for (struct decision *d = m->decisions; d; d = d->next)
            if (dt_decision_is_complete(d) && holds(m, d->id) &&
                (!next || d->id.epoch < next->id.epoch))
                next = d;
        if (next)
            accept(m, next);
    } while (next);
}

struct decision *dt_decision_find(const struct dt_membership *m,
                                  struct decided id)
{
    struct decision *d = m->decisions;
    while (d && !dt_decided_same(d->id, id))
        d = d->next;
    return d;
}

static struct decision *add_decision(struct dt_membership *m, struct decided id)
{
    struct decision *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->id = id;
    d->next = m->decisions;
    m->decisions = d;
    return d;
}

void dt_decision_take_part(struct dt_membership *m, struct dt_cursor *body)
{
    struct decided id = {.term = (uint32_t)dt_cursor_uint(body, 4)};
    id.epoch = dt_cursor_uint(body, 8);
    size_t all = dt_cursor_uint(body, 4), offset = dt_cursor_uint(body, 4);
    if (body->failed || is_void(m, id))
        return;
    struct decision *d = dt_decision_find(m, id);
    if (!d)
        d = add_decision(m, id);
    if (d && offset == 0) { /* the first, or the root has begun again */
        dt_frame_unref(d->bytes);
        d->bytes = dt_frame_begin(DT_WIRE_NEWS);
        d->length = all;
    }
    if (d)
        dt_frame_bytes(d->bytes, body->at, (size_t)(body->end - body->at));
    if (!d || !d->bytes || d->bytes->failed)
        dt_mesh_no_memory(m->mesh);
    else if (dt_decision_is_complete(d) && !is_sane(m, dt_frame_body(d->bytes)))
        d->length = SIZE_MAX; /* it never will be complete */
    else
        accept_all(m);
}

void dt_decision_take_holds(struct dt_membership *m, struct dt_cursor *body)
{
    size_t term = dt_cursor_uint(body, 4);
    struct decided hold = dt_decided_get(body);
    if (body->failed || term != m->term)
        return;
    m->held = true;
    m->hold = hold;
    drop_void(m);
    accept_all(m);
}

void dt_decision_free_all(struct dt_membership *m)
{
    while (m->decisions)
        drop_decision(&m->decisions);
}
