/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board.c - boards: pieces, rounds, room, memory of mem_alloc. */
#include "board-ranks.h"

#include <unistd.h>

/* All lengths, notices and places in turn, each read by all. */
static void case_rounds(struct node_rank *r)
{
    char *buf = malloc(r->board->piece_max);
    NEED(r->board->rounds_room >= 8 && buf, "room");
    for (uint64_t round = 0; round < 300; round++) {
        size_t len = length_of(r, r->me, round);
        fill(buf, len, r->me, round);
        NEED(!post(r, round, buf, len, round % 3 == 0), "in place");
        for (size_t i = 0; i < r->size; i++)
            need_seen(r, (r->me + i) % r->size, round,
                      length_of(r, (r->me + i) % r->size, round),
                      round % 3 == 0);
        BOARDS->release(r->board, round + 1);
    }
    need_released(r, 300);
    free(buf);
}

/* A place is in the slot of its round, and not the one of the last round there.
 */
static void need_places(struct node_rank *r, size_t len)
{
    const struct dt_shared_board *b = r->board->shared;
    const size_t room = r->board->rounds_room, most = r->board->piece_max;
    for (uint64_t round = UINT64_MAX - 99; round; round++) {
        size_t at = dt_board_place(b, round, len);
        size_t slot = (size_t)(round % room) * most;
        NEED(at % 64 == 0 && at >= slot && at + len <= slot + most,
             "%zu bytes at %zu", len, at);
        NEED(len > most / 2 || at != dt_board_place(b, round - room, len),
             "%zu bytes again at %zu", len, at);
    }
}

/* Each rank knows where the pieces of the others are before it has read their
 * lines; a piece is inside the slot of its round, and a short one is not where
 * the last piece in that slot was. */
static void case_places(struct node_rank *r)
{
    static const size_t lens[] = {113, 128, 129, 1000, 4097, 32768};
    const struct dt_shared_board *b = r->board->shared;
    const size_t room = r->board->rounds_room, most = r->board->piece_max;
    char *buf = calloc(1, most);
    NEED(buf, "memory");
    for (uint64_t round = 0; round < 10 * room; round++) {
        size_t len = lens[round % 6];
        post(r, round, buf, len, false);
        for (size_t i = 0; i < r->size; i++) {
            const char *data = read_piece(r, i, round).data;
            NEED(data - (const char *)b->peer[i].head ==
                     dt_board_slot(b, round, len) - (char *)b->own,
                 "round %llu is elsewhere", (unsigned long long)round);
        }
        BOARDS->release(r->board, round + 1);
    }
    free(buf);
    for (size_t step = 1; step <= most; step *= 2)
        for (size_t len = step; len > step / 2; len -= (step + 7) / 8)
            need_places(r, len);
    need_released(r, 10 * room);
}

/* Within the room, rounds may be posted in any order. */
static void case_order(struct node_rank *r)
{
    const uint64_t room = r->board->rounds_room;
    char buf[200];
    struct dt_board_view view;
    for (uint64_t first = 0; first < 10 * room; first += room) {
        for (uint64_t i = 0; i < room; i++) {
            uint64_t round = first + (i * 5 + r->me) % room;
            fill(buf, sizeof(buf), r->me, round);
            post(r, round, buf, sizeof(buf), false);
        }
        for (uint64_t i = room; i-- > 0;)
            for (size_t k = 0; k < r->size; k++)
                need_seen(r, k, first + i, sizeof(buf), false);
        NEED(!BOARDS->read(r->board, r->me, first + room, &view), "too early");
        BOARDS->release(r->board, first + room);
    }
    need_released(r, 10 * room);
}

/* No piece is overwritten that a rank has not released. */
static void case_room(struct node_rank *r)
{
    const uint64_t room = r->board->rounds_room;
    const struct dt_board_piece piece = {.data = "y", .len = 1};
    bool in_place;
    for (uint64_t round = 0; round < room; round++)
        post(r, round, "x", 1, false);
    NEED(!BOARDS->post(r->board, room, &piece, &in_place), "beyond the room");
    NEED(BOARDS->released(r->board, 0), "nothing to release");
    node_barrier(r);
    if (r->me == 0) {
        NEED(!BOARDS->released(r->board, 1), "released too early");
        node_barrier(r);
    } else {
        BOARDS->release(r->board, room / 2);
        node_barrier(r);
        NEED(!BOARDS->released(r->board, 1), "released without rank 0");
    }
    NEED(!BOARDS->post(r->board, room, &piece, &in_place),
         "not all have released");
    node_barrier(r);
    if (r->me == 0)
        BOARDS->release(r->board, 3);
    node_barrier(r);
    NEED(BOARDS->released(r->board, 3) && !BOARDS->released(r->board, 4),
         "released");
    for (uint64_t round = room; round < room + 3; round++)
        NEED(BOARDS->post(r->board, round, &piece, &in_place), "room again");
    NEED(!BOARDS->post(r->board, room + 3, &piece, &in_place), "room for more");
    node_barrier(r);
    NEED(OPS->check(r->tl, &r->err) == DT_SUCCESS, "%s", r->err.text);
    node_barrier(r);
}

/* The bytes of a hole are not posted, but the others are where they belong. */
static void case_hole(struct node_rank *r)
{
    const size_t len = 30000, hole = 1000 + 77 * r->me, hole_len = 20000;
    char *buf = malloc(len);
    bool in_place;
    fill(buf, len, r->me, 0);
    const struct dt_board_piece piece = {
        .data = buf, .len = len, .hole = hole, .hole_len = hole_len};
    NEED(BOARDS->post(r->board, 0, &piece, &in_place), "post");
    memset(buf, -1, len);
    for (size_t i = 0; i < r->size; i++) {
        struct dt_board_view view = read_piece(r, i, 0);
        const char *data = view.data;
        size_t begin = 1000 + 77 * i, end = begin + hole_len;
        NEED(view.len == len, "length");
        for (size_t k = 0; k < len; k++)
            NEED((k >= begin && k < end) || data[k] == byte_of(i, 0, k),
                 "byte %zu", k);
    }
    free(buf);
    node_barrier(r);
}

/* Pieces in memory of mem_alloc are posted in place, whether the peers have
 * mapped it before or not, and where other memory was freed. */
static void case_in_place(struct node_rank *r)
{
    const size_t small = 100000, large = (size_t)5 << 20;
    size_t max = r->board->piece_max;
    uint64_t round = 0;
    for (int turn = 0; turn < 10; turn++) {
        char *a = allocate(r, small), *b = allocate(r, large);
        NEED(!a[0] && !a[small - 1] && !b[0] && !b[large - 1], "not zero");
        NEED((uintptr_t)a % 4096 == 0, "not aligned");
        const struct {
            char *at;
            size_t len;
        } pieces[] = {{a, 20000},
                      {a + 333, 20001},
                      {b + large - max, max},
                      {b + (turn * 500000 + 13), 113}};
        for (size_t i = 0; i < 4; i++, round++) {
            fill(pieces[i].at, pieces[i].len, r->me, round);
            NEED(post(r, round, pieces[i].at, pieces[i].len, false), "copied");
            for (size_t k = 0; k < r->size; k++)
                need_seen(r, k, round, pieces[i].len, false);
            BOARDS->release(r->board, round + 1);
            need_released(r, round + 1);
        }
        if (turn % 3 != 1)
            NEED(BOARDS->mem_free(r->tl, a, &r->err) == DT_SUCCESS, "free");
        NEED(BOARDS->mem_free(r->tl, a + 1, &r->err) == DT_ERR_INVALID_ARG,
             "free of the middle");
        NEED(BOARDS->mem_free(r->tl, b, &r->err) == DT_SUCCESS, "free");
        NEED(BOARDS->mem_free(r->tl, b, &r->err) == DT_ERR_INVALID_ARG,
             "twice");
    }
    NEED(BOARDS->mem_free(r->tl, r->board, &r->err) == DT_ERR_INVALID_ARG,
         "free of other memory");
}

/* Memory beyond the first windows and regions; what straddles two windows. */
static void case_far(struct node_rank *r)
{
    const size_t gib = (size_t)1 << 30, len = gib + gib / 2;
    char *a = untouched(r, len), *b = untouched(r, len);
    size_t step = r->board->piece_max / 2;
    uint64_t round = 0;
    for (int half = 0; half < 2; half++)
        for (size_t at = gib / 4; at < len; at += gib / 4, round++) {
            char *piece = (half ? b : a) + at - step;
            fill(piece, 2 * step - 64, r->me, round);
            NEED(post(r, round, piece, 2 * step - 64, false), "copied");
            for (size_t k = 0; k < r->size; k++)
                need_seen(r, k, round, 2 * step - 64, false);
            BOARDS->release(r->board, round + 1);
        }
    void *none = &none;
    NEED(BOARDS->mem_alloc(r->tl, (size_t)1 << 50, &none, &r->err) ==
             DT_ERR_NO_MEMORY,
         "a PiB");
    NEED(none == &none, "an output without success");
    node_barrier(r);
}

/* Freed memory is allocated again, and zero again. */
static void case_reuse(struct node_rank *r)
{
    uint64_t random = 7 + r->me;
    char *at[20] = {0};
    size_t len[20] = {0};
    for (int i = 0; i < 2000; i++) {
        size_t k = node_random(&random) % 20;
        if (at[k]) {
            for (size_t j = 0; j < len[k]; j += 997)
                NEED(at[k][j] == (char)k, "overwritten");
            NEED(BOARDS->mem_free(r->tl, at[k], &r->err) == DT_SUCCESS, "free");
        }
        len[k] = 1 + node_random(&random) % 300000;
        at[k] = allocate(r, len[k]);
        for (size_t j = 0; j < len[k]; j += 997) {
            NEED(!at[k][j], "not zero");
            at[k][j] = (char)k;
        }
    }
    const struct dt_segments *segments = &dt_shm_of(r->tl)->segments;
    NEED(segments->size < (size_t)40 << 20, "the file has grown to %llu",
         (unsigned long long)segments->size);
}

/* Boards are opened and closed; an id is reused with a new serial. */
static void case_many(struct node_rank *r)
{
    struct dt_board *first = r->board;
    struct dt_board *open[3] = {0};
    for (uint64_t n = 0; n < 300; n++) {
        size_t k = n % 3;
        char buf[300];
        if (open[k])
            BOARDS->close(open[k]);
        r->board = open[k] = node_board(r, (uint32_t)(1 + k), n + 2);
        for (uint64_t round = 0; round < 3; round++) {
            fill(buf, sizeof(buf), r->me, n + round);
            post(r, round, buf, 100 + 100 * round, false);
            for (size_t i = 0; i < r->size; i++) {
                struct dt_board_view view = read_piece(r, i, round);
                NEED(filled(view.data, view.len, i, n + round), "an old piece");
            }
            BOARDS->release(r->board, round + 1);
        }
        need_released(r, 3);
    }
    for (size_t k = 0; k < 3; k++)
        BOARDS->close(open[k]);
    r->board = first;
    struct dt_board *all[DT_INBOX_BOARDS] = {0}, *more;
    for (uint32_t id = 1; id < DT_INBOX_BOARDS; id++)
        all[id] = node_board(r, id, 1000 + id);
    const struct dt_board_config config = {.id = DT_INBOX_BOARDS, .size = 0};
    NEED(BOARDS->open(r->tl, &config, &more, &r->err) == DT_ERR_SYSTEM,
         "one too many");
    for (uint32_t id = 1; id < DT_INBOX_BOARDS; id++)
        BOARDS->close(all[id]);
    const struct dt_segments *segments = &dt_shm_of(r->tl)->segments;
    NEED(segments->nused == 1, "%zu segments left", segments->nused);
    node_barrier(r);
}

/* A peer that has closed its board has released everything; one that has not
 * opened it yet has posted nothing. */
static void case_serials(struct node_rank *r)
{
    struct dt_board *first = r->board;
    struct dt_board_view view;
    if (r->me == 0) {
        r->board = node_board(r, 5, 10);
        NEED(!BOARDS->read(r->board, 1, 0, &view), "a board that is not there");
        NEED(!BOARDS->released(r->board, 1), "released without being there");
        post(r, 0, "a", 1, false);
        NEED(*(const char *)read_piece(r, 0, 0).data == 'a', "my own");
    }
    BOARDS->close(r->board == first ? NULL : r->board);
    r->board = first;
    node_barrier(r);
}

static void case_close(struct node_rank *r)
{
    for (uint64_t n = 0; n < 200; n++) {
        struct dt_board *first = r->board;
        r->board = node_board(r, 9, 100 + n);
        post(r, 0, "abc", 3, false);
        for (size_t i = 0; i < r->size; i++)
            NEED(!memcmp(read_piece(r, i, 0).data, "abc", 3), "contents");
        BOARDS->release(r->board, 1);
        need_released(r, 1);
        BOARDS->close(r->board);
        r->board = first;
    }
}

/* A rank that sleeps is woken by a piece, a message, a release, and at the
 * latest when the time is over. */
static void case_sleep(struct node_rank *r)
{
    for (uint64_t round = 0; round < 50; round++) {
        struct dt_board_view view;
        size_t before = (r->me + r->size - 1) % r->size;
        if (r->me == round % r->size || round >= r->size)
            post(r, round, "z", 1, false);
        while ((before == round % r->size || round >= r->size) &&
               !BOARDS->read(r->board, before, round, &view))
            OPS->sleep(r->tl, 1000);
        BOARDS->release(r->board, round + 1);
        while (!BOARDS->released(r->board, round + 1))
            OPS->sleep(r->tl, 1000);
    }
    OPS->sleep(r->tl, 1);
    OPS->sleep(r->tl, 1);
    node_barrier(r);
}

/* One rank is alone on its board. */
static void case_alone(struct node_rank *r)
{
    size_t me = r->me;
    const struct dt_board_config config = {
        .id = 3, .serial = 4, .ranks = &me, .size = 1};
    struct dt_board *board, *all = r->board;
    NEED(BOARDS->open(r->tl, &config, &board, &r->err) == DT_SUCCESS, "%s",
         r->err.text);
    r->board = board;
    for (uint64_t round = 0; round < 100; round++) {
        post(r, round, "q", 1, false);
        NEED(*(const char *)read_piece(r, 0, round).data == 'q', "contents");
        BOARDS->release(r->board, round + 1);
        NEED(BOARDS->released(r->board, round + 1), "released");
    }
    BOARDS->close(board);
    r->board = all;
}

static const struct node_case cases[] = {
    {"rounds", case_rounds, {1, 2, 3, 9}},
    {"places", case_places, {1, 2, 9}},
    {"any order", case_order, {1, 2, 5}},
    {"room", case_room, {2, 3}},
    {"a hole", case_hole, {2, 3}},
    {"in place", case_in_place, {1, 2, 3}},
    {"in place beyond the first GiB", case_far, {1, 2}},
    {"freed memory is reused", case_reuse, {2}},
    {"300 boards", case_many, {1, 2, 3}},
    {"serials", case_serials, {2}},
    {"closing", case_close, {2, 4}},
    {"sleep", case_sleep, {2, 3, 8}},
    {"alone", case_alone, {1, 2}},
};

int main(int argc, char **argv)
{
    return node_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
