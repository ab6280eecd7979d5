/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* message.c - requests as bytes. */
#include "grad/message.h"

#include <stdlib.h>
#include <string.h>

static void put(unsigned char **at, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        *(*at)++ = (unsigned char)(value >> 8 * i);
}

static void put_real(unsigned char **at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put(at, bits, 8);
}

static double get_real(struct dt_cursor *cursor)
{
    uint64_t bits = dt_cursor_uint(cursor, 8);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* ---- writing ---- */

/* How many splits go with the item. */
static uint32_t splits_of(const struct dt_grad_work *work,
                          const struct dt_item *item)
{
    if (!item->splits)
        return 0;
    return (uint32_t)(work->kind == DT_WORK_SET_ADD ? item->rows
                                                    : work->set->n);
}

static size_t length(const struct dt_grad_work *work)
{
    size_t len = 1 + 4 + 2 + strlen(work->name) + 2;
    for (int i = 0; i < work->n; i++)
        len += 5 + 4 + 4 + 16 + 1 + 8 * (size_t)work->items[i].type.ndim + 4 +
               8 * (size_t)splits_of(work, &work->items[i]);
    return len;
}

static void put_item(unsigned char **at, const struct dt_grad_work *work,
                     const struct dt_item *item)
{
    const struct dt_item_type *type = &item->type;
    put(at, type->kind, 1);
    put(at, type->dtype, 1);
    put(at, type->wire, 1);
    put(at, type->op, 1);
    put(at, type->place, 1);
    put(at, type->element, 4);
    put(at, (uint32_t)type->root, 4);
    put_real(at, type->prescale);
    put_real(at, type->postscale);
    put(at, (uint64_t)type->ndim, 1);
    for (int d = 0; d < type->ndim; d++)
        put(at, (uint64_t)type->shape[d], 8);
    uint32_t count = splits_of(work, item);
    put(at, count, 4);
    for (uint32_t i = 0; i < count; i++)
        put(at, (uint64_t)item->splits[i], 8);
}

dt_result_t dt_message_append(struct dt_round *round,
                              const struct dt_grad_work *work,
                              struct dt_error *err)
{
    size_t len = length(work), name = strlen(work->name);
    if (round->len + len > round->room) {
        size_t room = 2 * (round->len + len);
        unsigned char *more = realloc(round->mine, room);
        if (!more)
            return dt_no_memory(err);
        round->mine = more;
        round->room = room;
    }
    unsigned char *at = round->mine + round->len;
    put(&at, work->kind, 1);
    put(&at, work->plan, 4);
    put(&at, name, 2);
    memcpy(at, work->name, name);
    at += name;
    put(&at, (uint64_t)work->n, 2);
    for (int i = 0; i < work->n; i++)
        put_item(&at, work, &work->items[i]);
    round->len += len;
    return DT_SUCCESS;
}

/* ---- reading ---- */

bool dt_message_read(struct dt_cursor *cursor, struct dt_message *message)
{
    if (cursor->at == cursor->end)
        return false;
    message->kind = (enum dt_work_kind)dt_cursor_uint(cursor, 1);
    message->plan = (uint32_t)dt_cursor_uint(cursor, 4);
    size_t len = dt_cursor_uint(cursor, 2);
    const void *name = dt_cursor_bytes(cursor, len);
    message->n = (int)dt_cursor_uint(cursor, 2);
    if (cursor->failed || len >= sizeof(message->name) ||
        message->kind > DT_WORK_STEP) {
        cursor->failed = true;
        return false;
    }
    memcpy(message->name, name, len);
    message->name[len] = '\0';
    return true;
}

bool dt_message_read_item(struct dt_cursor *cursor, struct dt_item_type *type,
                          int64_t **splits, uint32_t *count)
{
    memset(type, 0, sizeof(*type));
    *splits = NULL;
    type->kind = (uint8_t)dt_cursor_uint(cursor, 1);
    type->dtype = (uint8_t)dt_cursor_uint(cursor, 1);
    type->wire = (uint8_t)dt_cursor_uint(cursor, 1);
    type->op = (uint8_t)dt_cursor_uint(cursor, 1);
    type->place = (uint8_t)dt_cursor_uint(cursor, 1);
    type->element = (uint32_t)dt_cursor_uint(cursor, 4);
    type->root = (int32_t)(uint32_t)dt_cursor_uint(cursor, 4);
    type->prescale = get_real(cursor);
    type->postscale = get_real(cursor);
    type->ndim = (int32_t)dt_cursor_uint(cursor, 1);
    if (type->ndim > DT_GRAD_DIMS)
        cursor->failed = true;
    for (int d = 0; !cursor->failed && d < type->ndim; d++)
        type->shape[d] = (int64_t)dt_cursor_uint(cursor, 8);
    *count = (uint32_t)dt_cursor_uint(cursor, 4);
    if (cursor->failed || *count > (size_t)(cursor->end - cursor->at) / 8) {
        cursor->failed = true;
        return false;
    }
    if (*count == 0)
        return true;
    *splits = malloc(*count * sizeof(**splits));
    if (!*splits)
        return false;
    for (uint32_t i = 0; i < *count; i++)
        (*splits)[i] = (int64_t)dt_cursor_uint(cursor, 8);
    return true;
}
