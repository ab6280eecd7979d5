/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* verify.c - fill the buffers of a call and verify its result. */
#include <string.h>

#include "measure/measure.h"

enum { DIRT = 0xc3 };

void verify_aim(const struct bench *bench, const struct row *row, bool inside,
                struct call *call)
{
    const struct operation *operation = bench->options->operation;
    size_t part = row->count * dt_dtype_size(row->dtype);
    size_t own = part * (size_t)bench->job->rank;
    char *send = inside ? bench->buffers.b : bench->buffers.a;
    char *recv = bench->buffers.b;
    if (inside && operation->parts_received)
        send += own;
    if (inside && operation->parts_sent)
        recv += own;
    *call = (struct call){.send = send,
                          .recv = recv,
                          .count = row->count,
                          .dtype = row->dtype,
                          .op = row->op,
                          .root = row->root,
                          .job = bench->job,
                          .stream = buffers_stream(&bench->buffers)};
}

/* ---- one buffer, or one block of it ---- */

/* The expected content: this rank's input, the reduction, or the raw bits of a
 * source, from element first on. */
enum origin { INPUT, RESULT, RAW };

struct piece {
    enum origin origin;
    uint64_t source; /* of RAW */
    size_t first;
};

static size_t make_table(const struct bench *bench, const struct call *call,
                         const struct piece *piece, size_t count, uint64_t seed)
{
    size_t all = piece->first + count;
    size_t period = all < CHECK_PERIOD ? all : CHECK_PERIOD;
    const struct check_kind kind = {call->dtype, call->op, call->job->size,
                                    seed};
    if (piece->origin == INPUT)
        check_input(bench->table, period, &kind, call->job->rank);
    else if (piece->origin == RESULT)
        check_result(bench->table, period, &kind);
    else
        check_raw(bench->table, period, call->dtype, seed, piece->source);
    return period;
}

static void put(const struct bench *bench, const struct call *call, void *at,
                size_t count, const struct piece *piece, uint64_t seed)
{
    size_t period = make_table(bench, call, piece, count, seed);
    check_tile(at, count, bench->table, period, dt_dtype_size(call->dtype),
               piece->first);
}

static size_t wrong(const struct bench *bench, const struct call *call,
                    const void *at, size_t count, const struct piece *piece,
                    uint64_t seed)
{
    const struct check_kind kind = {call->dtype, call->op, call->job->size,
                                    seed};
    if (!count)
        return 0;
    size_t period = make_table(bench, call, piece, count, seed);
    return check_compare(at, count, bench->table, period,
                         dt_dtype_size(call->dtype), piece->first,
                         piece->origin == RESULT ? &kind : NULL);
}

/* ---- what is sent ---- */

/* The number of blocks that differ by receiver, and their elements: only
 * alltoall has more than one. */
static size_t parts_sent(const struct bench *bench, const struct call *call,
                         size_t *count)
{
    const struct operation *operation = bench->options->operation;
    size_t parts = operation->parts_sent ? (size_t)bench->job->size : 1;
    bool apart = operation->data == DATA_MOVED;
    *count = apart ? call->count : parts * call->count;
    return apart ? parts : 1;
}

static struct piece sent(const struct bench *bench, size_t i)
{
    size_t rank = (size_t)bench->job->rank, size = (size_t)bench->job->size;
    if (bench->options->operation->data == DATA_REDUCED)
        return (struct piece){INPUT, 0, 0};
    return (struct piece){RAW, rank * size + i, 0};
}

static bool is_bcast(const struct operation *operation)
{
    return operation->data == DATA_MOVED && operation->rooted;
}

void verify_fill(const struct bench *bench, const struct call *call,
                 uint64_t seed)
{
    const struct buffers *buffers = &bench->buffers;
    const struct operation *operation = bench->options->operation;
    size_t part = call->count * dt_dtype_size(call->dtype), count;
    size_t most = operation->split ? part * (size_t)bench->job->size : part;
    char *at = call->send == buffers->a
                   ? buffers->a
                   : buffers->b + ((const char *)call->send - buffers->b);
    memset(buffers->b, DIRT, most);
    if (!call->count || (is_bcast(operation) && bench->job->rank != call->root))
        return;
    size_t parts = parts_sent(bench, call, &count);
    for (size_t i = 0; i < parts; i++) {
        struct piece piece = sent(bench, i);
        put(bench, call, at + i * part, count, &piece, seed);
    }
}

/* The send buffer must be unchanged. */
static size_t count_sent(const struct bench *bench, const struct call *call,
                         uint64_t seed)
{
    size_t part = call->count * dt_dtype_size(call->dtype), n = 0, count;
    size_t parts = parts_sent(bench, call, &count);
    for (size_t i = 0; i < parts; i++) {
        struct piece piece = sent(bench, i);
        n += wrong(bench, call, (const char *)call->send + i * part, count,
                   &piece, seed);
    }
    return n;
}

/* ---- what is received ---- */

static struct piece received(const struct bench *bench, const struct call *call,
                             size_t i)
{
    const struct operation *operation = bench->options->operation;
    size_t rank = (size_t)bench->job->rank, size = (size_t)bench->job->size;
    if (operation->data == DATA_REDUCED)
        return (struct piece){RESULT, 0,
                              operation->split ? rank * call->count : 0};
    if (operation->rooted)
        return (struct piece){RAW, (size_t)call->root * size, 0};
    if (!operation->split)
        return (struct piece){RAW, (rank + size - 1) % size * size, 0};
    return (struct piece){RAW, i * size + (operation->parts_sent ? rank : 0),
                          0};
}

static size_t count_dirt_gone(const struct call *call)
{
    size_t bytes = call->count * dt_dtype_size(call->dtype), gone = 0;
    for (size_t i = 0; i < bytes; i++)
        gone += ((const unsigned char *)call->recv)[i] != DIRT;
    return gone;
}

static size_t count_received(const struct bench *bench, const struct call *call,
                             uint64_t seed)
{
    const struct operation *operation = bench->options->operation;
    size_t part = call->count * dt_dtype_size(call->dtype), n = 0;
    size_t parts = operation->parts_received ? (size_t)bench->job->size : 1;
    for (size_t i = 0; i < parts; i++) {
        struct piece piece = received(bench, call, i);
        n += wrong(bench, call, (const char *)call->recv + i * part,
                   call->count, &piece, seed);
    }
    return n;
}

size_t verify_count(const struct bench *bench, const struct call *call,
                    uint64_t seed)
{
    const struct operation *operation = bench->options->operation;
    bool outside = call->send == bench->buffers.a;
    bool ignored = operation->data == DATA_REDUCED && operation->rooted &&
                   bench->job->rank != call->root;
    size_t n = !buffers_intact(&bench->buffers);
    if (operation->data == DATA_NONE)
        return 0;
    if (outside || ignored)
        n += count_sent(bench, call, seed);
    if (!ignored)
        n += count_received(bench, call, seed);
    else if (outside)
        n += count_dirt_gone(call);
    return n;
}
