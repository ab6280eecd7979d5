/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* entry.c - the names that ranks have told of. */
#include "grad/entry.h"

#include <stdlib.h>
#include <string.h>

#include "grad/item.h"
#include "grad/message.h"
#include "grad/work.h"

/* ---- the table ---- */

static struct dt_entry *find(struct dt_grad_set *set,
                             const struct dt_message *message)
{
    unsigned hash = dt_grad_hash(message->plan, message->name);
    struct dt_entry *e = set->table[hash];
    while (e && (e->plan != message->plan || strcmp(e->name, message->name)))
        e = e->chain;
    return e;
}

void dt_entry_free(struct dt_entry *e)
{
    if (!e)
        return;
    free(e->name);
    free(e->types);
    free(e->rows);
    free(e->received);
    free(e->ranks);
    free(e->told);
    free(e);
}

static struct dt_entry *make(struct dt_grad_set *set, int r,
                             const struct dt_message *message)
{
    size_t cells = (size_t)message->n * (size_t)set->n + 1;
    struct dt_entry *e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    *e = (struct dt_entry){
        .name = strdup(message->name),
        .plan = message->plan,
        .kind = message->kind,
        .n = message->n,
        .teller = r,
        .types = calloc((size_t)message->n + 1, sizeof(*e->types)),
        .rows = calloc(cells, sizeof(*e->rows)),
        .received = calloc(cells, sizeof(*e->received)),
        .told = calloc((size_t)set->n, sizeof(*e->told)),
    };
    if (!e->name || !e->types || !e->rows || !e->received || !e->told) {
        dt_entry_free(e);
        return NULL;
    }
    unsigned hash = dt_grad_hash(e->plan, e->name);
    e->chain = set->table[hash];
    set->table[hash] = e;
    *set->entries_end = e;
    set->entries_end = &e->next;
    return e;
}

void dt_entry_take(struct dt_grad_set *set, struct dt_entry **at)
{
    struct dt_entry *e = *at;
    *at = e->next;
    if (set->entries_end == &e->next)
        set->entries_end = at;
    struct dt_entry **chain = &set->table[dt_grad_hash(e->plan, e->name)];
    while (*chain != e)
        chain = &(*chain)->chain;
    *chain = e->chain;
    if (e->work)
        set->open--;
}

void dt_entries_clear(struct dt_grad_set *set)
{
    while (set->entries) {
        struct dt_entry *e = set->entries;
        dt_entry_take(set, &set->entries);
        dt_entry_free(e);
    }
}

/* ---- hearing ---- */

const char *dt_entry_kind(const struct dt_entry *e)
{
    return e->kind == DT_WORK_OPERATIONS && e->n > 0
               ? dt_item_kind(e->types[0].kind)
               : "request";
}

/* Rank r has told of item i; the first to tell has set its type. */
static void compare(struct dt_grad_set *set, struct dt_entry *e, int i, int r,
                    const struct dt_item_type *type)
{
    char first[DT_ITEM_TEXT], other[DT_ITEM_TEXT];
    if (e->code != DT_SUCCESS ||
        dt_item_agrees(&e->types[i], type, first, other))
        return;
    e->code = dt_error_set(&e->err, DT_ERR_MISMATCH,
                           "%s '%.200s': rank %d has %s, rank %d has %s",
                           dt_entry_kind(e), e->name, set->ranks[e->teller],
                           first, set->ranks[r], other);
}

static void compare_ranks(struct dt_grad_set *set, struct dt_entry *e, int r,
                          const int64_t *ranks, uint32_t n)
{
    if (e->code == DT_SUCCESS &&
        ((int)n != e->nranks ||
         memcmp(ranks, e->ranks, n * sizeof(*ranks)) != 0))
        e->code =
            dt_error_set(&e->err, DT_ERR_MISMATCH,
                         "a new set: rank %d has other ranks than rank %d",
                         set->ranks[r], set->ranks[e->teller]);
}

static dt_result_t hear_item(struct dt_grad_set *set, struct dt_entry *e, int i,
                             int r, struct dt_cursor *cursor,
                             struct dt_error *err)
{
    struct dt_item_type type;
    int64_t *splits;
    uint32_t count;
    if (!dt_message_read_item(cursor, &type, &splits, &count)) {
        if (cursor->failed)
            return DT_SUCCESS; /* said by the caller */
        return dt_no_memory(err);
    }
    if (i >= e->n) { /* the numbers differ, which was noticed */
        free(splits);
        return DT_SUCCESS;
    }
    if (e->ntold == 1)
        e->types[i] = type;
    else
        compare(set, e, i, r, &type);
    size_t cell = (size_t)i * (size_t)set->n + (size_t)r;
    e->rows[cell] = type.ndim ? type.shape[0] : 1;
    if (e->kind == DT_WORK_SET_ADD && !e->ranks) {
        e->ranks = splits;
        e->nranks = (int)count;
        return DT_SUCCESS;
    }
    if (e->kind == DT_WORK_SET_ADD)
        compare_ranks(set, e, r, splits, count);
    else if (splits && (int)count == set->n)
        e->received[cell] = splits[set->me];
    free(splits);
    return DT_SUCCESS;
}

/* This rank's own work, which is told in the order of the list. */
static void recognize(struct dt_grad_set *set, struct dt_entry *e)
{
    e->work = set->telling;
    if (!e->work)
        return;
    set->telling = e->work->next;
    e->work->next = NULL;
    set->open++;
}

static dt_result_t hear(struct dt_grad_set *set, int r,
                        const struct dt_message *message,
                        struct dt_cursor *cursor, struct dt_error *err)
{
    struct dt_entry *e = find(set, message);
    if (!e)
        e = make(set, r, message);
    if (!e)
        return dt_no_memory(err);
    if (e->told[r])
        return dt_error_set(err, DT_ERR_VERSION,
                            "rank %d has told of '%.200s' twice", set->ranks[r],
                            e->name);
    e->told[r] = true;
    e->ntold++;
    if (r == 0)
        e->heard = ++set->heard;
    if (r == set->me)
        recognize(set, e);
    if (e->code == DT_SUCCESS &&
        (message->kind != e->kind || message->n != e->n))
        e->code = dt_error_set(
            &e->err, DT_ERR_MISMATCH,
            "%s '%.200s': rank %d has %d of that name, rank %d has %d",
            dt_entry_kind(e), e->name, set->ranks[e->teller], e->n,
            set->ranks[r], message->n);
    dt_result_t rc = DT_SUCCESS;
    for (int i = 0; rc == DT_SUCCESS && i < message->n; i++)
        rc = hear_item(set, e, i, r, cursor, err);
    return rc;
}

dt_result_t dt_entries_hear(struct dt_grad_set *set, int r, const void *body,
                            size_t len, struct dt_error *err)
{
    struct dt_cursor cursor = dt_cursor(body, len);
    struct dt_message message;
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS && dt_message_read(&cursor, &message))
        rc = hear(set, r, &message, &cursor, err);
    if (rc == DT_SUCCESS && cursor.failed)
        rc = dt_error_set(err, DT_ERR_VERSION,
                          "what rank %d has started cannot be read: ranks of "
                          "another version",
                          set->ranks[r]);
    return rc;
}

/* ---- the end of a step ---- */

static void fail_lacking(struct dt_grad_set *set, struct dt_entry *e)
{
    int with = 0, without = 0;
    while (with < set->n && !e->told[with])
        with++;
    while (without < set->n && e->told[without])
        without++;
    struct dt_error err;
    dt_error_set(&err, DT_ERR_MISMATCH,
                 "gradient '%.200s': rank %d has submitted it in this step, "
                 "rank %d has not",
                 e->name, set->ranks[with < set->n ? with : 0],
                 set->ranks[without < set->n ? without : 0]);
    if (e->work)
        dt_work_end(e->work, DT_ERR_MISMATCH, &err);
}

void dt_entries_end_step(struct dt_grad_set *set, uint32_t plan)
{
    struct dt_entry **at = &set->entries;
    while (*at) {
        struct dt_entry *e = *at;
        if (e->plan != plan || e->kind != DT_WORK_OPERATIONS) {
            at = &e->next;
            continue;
        }
        dt_entry_take(set, at);
        fail_lacking(set, e);
        dt_entry_free(e);
    }
}
