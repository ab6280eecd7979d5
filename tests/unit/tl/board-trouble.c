/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board-trouble.c - ranks that read a board of which another rank dies, or
 * writes what it must not. */
#include "board-ranks.h"

#include <unistd.h>

/* Pieces posted before a death can still be read; then the death is noticed. */
static void case_death(struct node_rank *r)
{
    size_t victim = r->size - 1;
    char buf[5000];
    fill(buf, sizeof(buf), r->me, 0);
    post(r, 0, buf, sizeof(buf), false);
    if (r->me == victim) {
        post(r, 1, "last", 4, true);
        node_die(r);
    }
    node_barrier(r);
    usleep(20000);
    need_seen(r, victim, 0, sizeof(buf), false);
    struct dt_board_view view = read_piece(r, victim, 1);
    NEED(view.notice && !memcmp(view.data, "last", 4), "the last piece");
    node_barrier(r);
    NEED(OPS->check(r->tl, &r->err) == DT_SUCCESS, "not needed: %s",
         r->err.text);
    node_barrier(r);
    NEED(!BOARDS->read(r->board, victim, 2, &view), "a piece of a dead rank");
    need_failed(r, "gone");
}

/* A rank that has looked for a piece before the other posted it and died does
 * not fail: so it is when ranks leave one after the other. */
static void case_death_after_all(struct node_rank *r)
{
    size_t victim = r->size - 1;
    struct dt_board_view view;
    if (r->me != victim)
        NEED(!BOARDS->read(r->board, victim, 0, &view), "too early");
    if (r->me != victim)
        NEED(!BOARDS->released(r->board, 1), "released too early");
    BOARDS->release(r->board, r->me == victim ? 0 : 1);
    node_barrier(r);
    if (r->me == victim) {
        post(r, 0, "x", 1, false);
        BOARDS->release(r->board, 1);
        node_die(r);
    }
    node_barrier(r);
    usleep(20000);
    for (int i = 0; i < 10; i++)
        NEED(OPS->check(r->tl, &r->err) == DT_SUCCESS, "%s", r->err.text);
    NEED(BOARDS->read(r->board, victim, 0, &view), "its piece");
    NEED(BOARDS->released(r->board, 1), "released");
    node_barrier(r);
}

static void case_death_room(struct node_rank *r)
{
    const uint64_t room = r->board->rounds_room;
    const struct dt_board_piece piece = {.data = "x", .len = 1};
    bool in_place;
    if (r->me == r->size - 1)
        node_die(r);
    for (uint64_t round = 0; round < room; round++)
        post(r, round, "x", 1, false);
    BOARDS->release(r->board, room);
    NEED(OPS->check(r->tl, &r->err) == DT_SUCCESS, "%s", r->err.text);
    node_barrier(r);
    NEED(!BOARDS->post(r->board, room, &piece, &in_place), "room of the dead");
    need_failed(r, "gone");
}

/* Rank 1 writes into its own board what no transport writes. */
static const struct {
    uint32_t len, kind;
    uint64_t offset;
} nonsense[] = {
    {DT_LINE_INLINE + 1, DT_LINE_DATA, 0},
    {UINT32_MAX, DT_LINE_DATA, 0},
    {UINT32_MAX, DT_LINE_AT, 4096},
    {100, DT_LINE_AT, (uint64_t)1 << 40},
    {100, DT_LINE_AT, UINT64_MAX - 50},
    {100, DT_LINE_BUFFER, (uint64_t)1 << 39},
    {64 << 20, 77, 4096},
    {100, 77, (uint64_t)1 << 41},
};

static void hostile(struct node_rank *r, size_t which)
{
    struct dt_board_view view;
    if (r->me == 1) {
        struct dt_shared_board *b = r->board->shared;
        struct dt_board_line *line = dt_board_line(b, 0);
        line->len = nonsense[which].len;
        line->kind = nonsense[which].kind;
        line->buffer.offset = nonsense[which].offset;
        dt_board_publish(b, 0, false);
        node_barrier(r);
        need_failed(r, "given up");
        return;
    }
    node_barrier(r);
    NEED(!BOARDS->read(r->board, 1, 0, &view), "a damaged line was read");
    need_failed(r, "");
}

#define HOSTILE(n)                                                             \
    static void case_hostile_##n(struct node_rank *r)                          \
    {                                                                          \
        hostile(r, n);                                                         \
    }
HOSTILE(0)
HOSTILE(1)
HOSTILE(2)
HOSTILE(3)
HOSTILE(4)
HOSTILE(5)
HOSTILE(6)
HOSTILE(7)

/* A directory entry that points outside the file. */
static void case_hostile_directory(struct node_rank *r)
{
    struct dt_board_view view;
    if (r->me == 1) {
        struct dt_inbox_board *entry = &dt_shm_of(r->tl)->box.boards[0];
        entry->offset = (uint64_t)1 << 38;
        node_barrier(r);
        need_failed(r, "given up");
        entry->offset = 0;
        return;
    }
    node_barrier(r);
    NEED(!BOARDS->read(r->board, 1, 0, &view), "a damaged line was read");
    need_failed(r, "");
}

/* A flag of another round is ignored. */
static void case_wrong_flags(struct node_rank *r)
{
    static const uint64_t flags[] = {UINT64_MAX, 1, 4, 34, 1u << 20};
    struct dt_board_view view;
    for (size_t i = 0; i < 5; i++) {
        if (r->me == 1)
            dt_board_line(r->board->shared, 0)->flag = flags[i];
        node_barrier(r);
        if (r->me != 1)
            NEED(!BOARDS->read(r->board, 1, 0, &view), "flag %zu", i);
        node_barrier(r);
    }
}

static const struct node_case cases[] = {
    {"a death", case_death, {2, 3, 5}, .kills = true},
    {"a death after its last piece",
     case_death_after_all,
     {2, 3},
     .kills = true},
    {"a death makes no room", case_death_room, {2, 3}, .kills = true},
    {"hostile: inline too long", case_hostile_0, {2, 3}},
    {"hostile: inline far too long", case_hostile_1, {2}},
    {"hostile: too long", case_hostile_2, {2}},
    {"hostile: beyond the file", case_hostile_3, {2}},
    {"hostile: offset wraps", case_hostile_4, {2}},
    {"hostile: a buffer beyond the file", case_hostile_5, {2}},
    {"hostile: unknown kind, too long", case_hostile_6, {2}},
    {"hostile: unknown kind, beyond", case_hostile_7, {2}},
    {"hostile: directory", case_hostile_directory, {2}},
    {"flags of other rounds", case_wrong_flags, {2}},
};

int main(int argc, char **argv)
{
    return node_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
