/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exchange.c - exchanges among processes that share a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "exec/exec.h"

#define SLOT ((size_t)8 << 20)

/* The boards of all processes. */
struct node {
    void *board[RANKS];
    uint32_t *words; /* pinned: abort, done */
    uint32_t last;
    char *send, *recv;
    dt_dtype_t dtype;
    dt_op_t op;
};

static void close_boards(struct device *d, struct node *node)
{
    for (size_t r = 0; r < d->size; r++)
        if (r != d->rank)
            d->gpu->ops->release(d->gpu, node->board[r]);
    meet(d);
    d->gpu->ops->share_free(d->gpu, node->board[d->rank], NULL);
}

static void open_boards(struct device *d, struct node *node)
{
    struct dt_error err;
    meet(d);
    need(d->gpu->ops->share_alloc(d->gpu, 0, dt_gpu_board_size(SLOT),
                                  &node->board[d->rank],
                                  &d->area->handle[d->rank], &err),
         &err);
    meet(d);
    for (size_t r = 0; r < d->size; r++)
        if (r != d->rank)
            need(d->gpu->ops->import(d->gpu, 0, &d->area->handle[r],
                                     &node->board[r], &err),
                 &err);
}

static void open_node(struct device *d, struct node *node, size_t room)
{
    struct dt_error err;
    void *words;
    *node = (struct node){.dtype = DT_DTYPE_F32, .op = DT_OP_SUM};
    open_boards(d, node);
    need(d->gpu->ops->host_alloc(d->gpu, 0, 4096, &words, &err), &err);
    node->words = words;
    node->send = device_memory(d, room);
    node->recv = device_memory(d, room);
    meet(d);
}

static void close_node(struct device *d, struct node *node)
{
    close_boards(d, node);
    d->gpu->ops->share_free(d->gpu, node->send, NULL);
    d->gpu->ops->share_free(d->gpu, node->recv, NULL);
    d->gpu->ops->host_free(d->gpu, node->words);
}

/* Of count elements; rows: one for each rank, instead of one for all. */
static void exchange(struct device *d, struct node *node, enum dt_gpu_way way,
                     size_t count, bool rows, bool post)
{
    struct dt_error err;
    struct dt_gpu_exchange x = {
        .way = way,
        .post = post,
        .rank = d->rank,
        .size = d->size,
        .slot = SLOT,
        .send = node->send,
        .recv = node->recv,
        .count = count,
        .send_rows = rows ? d->size : 1,
        .from = ((uint32_t)1 << d->size) - 1,
        .send_pitch = count * dt_dtype_size(node->dtype),
        .recv_pitch = count * dt_dtype_size(node->dtype),
        .dtype = node->dtype,
        .op = node->op,
        .scale = 1,
        .abort = &node->words[0],
        .done = &node->words[64],
        .done_value = ++node->last,
    };
    memcpy(x.board, node->board, sizeof(node->board));
    need(d->gpu->ops->exchange(d->gpu, 0, &x, d->stream, &err), &err);
}

/* ---- right? ---- */

/* Any bits; of F32, numbers. */
static void fill(char *to, size_t bytes, dt_dtype_t dtype, size_t rank)
{
    uint32_t state = (uint32_t)(rank * 2654435761u + bytes);
    for (size_t i = 0; i < bytes; i += sizeof(float)) {
        state = state * 1664525u + 1013904223u;
        float number = (float)(int32_t)state / 3e5f;
        memcpy(to + i, dtype == DT_DTYPE_F32 ? (void *)&number : &state,
               bytes - i < 4 ? bytes - i : 4);
    }
}

static void expect(const struct node *node, enum dt_gpu_way way, char *want,
                   const void *const *in, size_t n, size_t count)
{
    const size_t row = count * dt_dtype_size(node->dtype);
    for (size_t r = 0; r < n && way == DT_GPU_PLACE; r++)
        memcpy(want + r * row, in[r], row);
    if (way != DT_GPU_PLACE)
        dt_exec_reduce_n(want, in, n, count, node->dtype, node->op, 1);
    if (way != DT_GPU_PLACE && node->op == DT_OP_AVG)
        dt_exec_divide(want, count, node->dtype, n);
}

static void check_one(struct device *d, struct node *node, enum dt_gpu_way way,
                      size_t count, bool rows, bool post)
{
    const size_t n = d->size, row = count * dt_dtype_size(node->dtype);
    const size_t shown = row * (rows ? n : 1);
    const size_t got = way == DT_GPU_PLACE ? row * n : row;
    const void *in[RANKS] = {NULL};
    char *all = malloc(n * shown), *want = malloc(got), *have = malloc(got);
    for (size_t r = 0; r < n; r++) {
        fill(all + r * shown, shown, node->dtype, r);
        in[r] = all + r * shown + (rows ? d->rank * row : 0);
    }
    expect(node, way, want, in, n, count);
    move(d, node->send, all + d->rank * shown, shown);
    exchange(d, node, way, count, rows, post);
    finish(d);
    move(d, have, node->recv, got);
    if (memcmp(want, have, got) != 0)
        fail("%zu processes: way %d of %zu elements of type %d, operation %d, "
             "%s%s: other bits than the host's",
             n, (int)way, count, (int)node->dtype, (int)node->op,
             rows ? "a row for each" : "one row", post ? ", posted" : "");
    free(all);
    free(want);
    free(have);
}

static void check_types(struct device *d, struct node *node)
{
    for (int k = 0; k <= DT_DTYPE_F8E5M2; k++)
        for (int op = 0; op <= DT_OP_PROD; op++) {
            node->dtype = (dt_dtype_t)k;
            node->op = (dt_op_t)op;
            check_one(d, node, DT_GPU_REDUCE, 1001, false, true);
            check_one(d, node, DT_GPU_REDUCE, 5003, true, false);
            check_one(d, node, DT_GPU_SPREAD, 5003, false, false);
        }
}

static void check_all(struct device *d, struct node *node)
{
    static const size_t counts[] = {1, 1000, 2048, 65537,
                                    ((size_t)3 << 20) + 5};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const bool few = counts[i] * sizeof(float) <= DT_GPU_POST_MAX;
        for (int post = 0; post <= few; post++) {
            check_one(d, node, DT_GPU_PLACE, counts[i], false, post);
            check_one(d, node, DT_GPU_PLACE, counts[i], true, post);
            check_one(d, node, DT_GPU_REDUCE, counts[i], false, post);
            check_one(d, node, DT_GPU_REDUCE, counts[i], true, post);
        }
        check_one(d, node, DT_GPU_SPREAD, counts[i], false, false);
    }
}

void check_exchange(struct device *d)
{
    struct node node;
    open_node(d, &node, RANKS * ((size_t)13 << 20));
    check_all(d, &node);
    check_types(d, &node);
    close_node(d, &node);
    if (d->rank == 0)
        printf("exchanges among %zu processes: the host's bits\n", d->size);
}

/* ---- fast? ---- */

/* 0 is the limit: an empty round, or a copy on the device. */
static void one_short(struct device *d, void *context, size_t variant)
{
    static const size_t bytes[] = {0, 4, 1024, 8192};
    exchange(d, context, DT_GPU_REDUCE, bytes[variant % 4] / sizeof(float),
             false, variant >= 4);
}

static void one_long(struct device *d, void *context, size_t variant)
{
    struct node *node = context;
    struct dt_error err;
    const struct dt_gpu_copy copy = {
        .dst = node->recv, .src = node->send, .len = d->bytes, .rows = 1};
    if (variant == 1)
        exchange(d, node, DT_GPU_SPREAD, d->bytes / sizeof(float), false,
                 false);
    else if (d->rank == 0)
        need(d->gpu->ops->copy(d->gpu, 0, &copy, d->stream, &err), &err);
}

void time_exchange(struct device *d)
{
    struct node node;
    double t[VARIANTS];
    open_node(d, &node, d->bytes);
    measure(d, one_short, &node, 8, t);
    row(d, "allreduce in one step, 4 B", t[1] * 1e6, t[0] * 1e6, "us", "");
    row(d, "allreduce in one step, 1 KiB", t[2] * 1e6, t[0] * 1e6, "us",
        "<= 1.3 of an empty round");
    row(d, "allreduce in one step, 8 KiB", t[3] * 1e6, t[0] * 1e6, "us",
        "<= 1.3 of an empty round");
    row(d, "the same, posted, 4 B", t[5] * 1e6, t[1] * 1e6, "us",
        "<= 1: not posted");
    row(d, "the same, posted, 1 KiB", t[6] * 1e6, t[2] * 1e6, "us",
        "<= 1: not posted");
    row(d, "the same, posted, 8 KiB", t[7] * 1e6, t[3] * 1e6, "us",
        "<= 1: not posted");
    measure(d, one_long, &node, 2, t);
    /* per rank: read and write the slot, read a part of all, write the result,
     * read all results, write them */
    const double n = (double)d->size, s = (double)d->bytes;
    const double moved = n * (2 * s + s + s / n + 2 * s);
    row(d, "allreduce in two steps, GB/s of memory", moved / t[1] * 1e-9,
        2 * s / t[0] * 1e-9, "GB/s", ">= 0.85 of a copy's");
    close_node(d, &node);
}
