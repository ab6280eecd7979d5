/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board-ranks.h - what the cases about boards have in common. */
#ifndef BOARD_RANKS_H
#define BOARD_RANKS_H

#include "node-ranks.h"
#include "tl/shm/shm.h"

#define OPS    (r->tl->ops)
#define BOARDS (r->tl->boards)

__attribute__((unused)) static char byte_of(size_t rank, uint64_t round,
                                            size_t i)
{
    return (char)((rank * 131 + round * 31 + i * 7 + i / 251) & 0x7f);
}

__attribute__((unused)) static void fill(char *buf, size_t len, size_t rank,
                                         uint64_t round)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = byte_of(rank, round, i);
}

__attribute__((unused)) static bool filled(const char *buf, size_t len,
                                           size_t rank, uint64_t round)
{
    for (size_t i = 0; i < len; i++)
        if (buf[i] != byte_of(rank, round, i))
            return false;
    return true;
}

__attribute__((unused)) static bool post(struct node_rank *r, uint64_t round,
                                         const void *data, size_t len,
                                         bool note)
{
    unsigned turn = 0;
    bool in_place = false;
    const struct dt_board_piece piece = {
        .data = data, .len = len, .notice = note};
    while (!BOARDS->post(r->board, round, &piece, &in_place))
        node_wait(r, &turn);
    return in_place;
}

__attribute__((unused)) static struct dt_board_view
read_piece(struct node_rank *r, size_t index, uint64_t round)
{
    unsigned turn = 0;
    struct dt_board_view view = {0};
    while (!BOARDS->read(r->board, index, round, &view))
        node_wait(r, &turn);
    return view;
}

__attribute__((unused)) static void need_released(struct node_rank *r,
                                                  uint64_t round)
{
    unsigned turn = 0;
    while (!BOARDS->released(r->board, round))
        node_wait(r, &turn);
}

__attribute__((unused)) static void need_seen(struct node_rank *r, size_t index,
                                              uint64_t round, size_t len,
                                              bool note)
{
    struct dt_board_view view = read_piece(r, index, round);
    NEED(view.len == len && view.notice == note, "%zu bytes instead of %zu",
         view.len, len);
    NEED(filled(view.data, len, index, round), "contents of %zu in %llu", index,
         (unsigned long long)round);
}

__attribute__((unused)) static void *allocate(struct node_rank *r, size_t len)
{
    void *ptr = NULL;
    NEED(BOARDS->mem_alloc(r->tl, len, &ptr, &r->err) == DT_SUCCESS, "%s",
         r->err.text);
    return ptr;
}

/* The same, but no page of it is there yet. */
__attribute__((unused)) static void *untouched(struct node_rank *r, size_t len)
{
    void *ptr = NULL;
    uint64_t offset;
    NEED(dt_segment_alloc(&dt_shm_of(r->tl)->segments, len, &ptr, &offset,
                          &r->err) == DT_SUCCESS,
         "%s", r->err.text);
    return ptr;
}

__attribute__((unused)) static size_t length_of(const struct node_rank *r,
                                                size_t index, uint64_t round)
{
    static const size_t lens[] = {0, 1, 8, 111, 112, 113, 4096, 5001};
    size_t i = (size_t)(round * 3 + index) % 10;
    return i < 8 ? lens[i] : r->board->piece_max - (i - 8) * 3;
}

/* The transport fails with an error that contains these words; then nothing new
 * can be read or posted. */
__attribute__((unused)) static void need_failed(struct node_rank *r,
                                                const char *words)
{
    struct dt_board_view view;
    bool in_place;
    const struct dt_board_piece piece = {.data = "x", .len = 1};
    dt_result_t result;
    while ((result = OPS->check(r->tl, &r->err)) == DT_SUCCESS)
        sched_yield();
    NEED(result == DT_ERR_PROC_FAILED && strstr(r->err.text, words), "%s: %s",
         dt_strerror(result), r->err.text);
    NEED(!BOARDS->post(r->board, 1000, &piece, &in_place), "post works still");
    for (uint64_t round = 0; round < 20; round++)
        NEED(!BOARDS->read(r->board, r->me, round, &view), "read works still");
}

#endif
