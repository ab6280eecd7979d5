/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board.c - boards in virtual time: each of the others sees what a rank has
 * posted and released after a delay of its own. */
#include <stdlib.h>
#include <string.h>

#include "sim/state.h"

/* What a rank has posted in a round. */
struct sim_piece {
    bool posted;
    uint64_t round;
    const char *data;
    char *copy; /* NULL: data is in the memory of the rank */
    size_t len;
    bool notice;
};

struct sim_board {
    struct dt_board board;
    struct sim_board *next;
    struct sim_rank *owner;
    uint64_t serial;
    size_t *ranks;
    struct sim_piece *pieces; /* by round modulo rounds_room */
    double *seen;             /* per piece and rank: when that one sees it */
    uint64_t *released;       /* per rank: how far, as seen here */
    /* per rank: what this one waits for; 0: nothing */
    uint64_t *piece;   /* a round + 1 */
    uint64_t *release; /* of all rounds below */
};

static struct sim_board *board_of(struct dt_board *board)
{
    return (struct sim_board *)board;
}

static void free_board(struct sim_board *b)
{
    for (uint64_t i = 0; b->pieces && i < b->board.rounds_room; i++)
        free(b->pieces[i].copy);
    free(b->ranks);
    free(b->pieces);
    free(b->seen);
    free(b->released);
    free(b->piece);
    free(b->release);
    free(b);
}

static dt_result_t sim_board_open(struct dt_tl *tl,
                                  const struct dt_board_config *config,
                                  struct dt_board **out, struct dt_error *err)
{
    struct sim_rank *me = (struct sim_rank *)tl;
    uint64_t room = me->sim->config.rounds_room;
    struct sim_board *b = calloc(1, sizeof(*b));
    if (!b)
        goto no_memory;
    b->board = (struct dt_board){.ops = &dt_sim_boards,
                                 .tl = tl,
                                 .size = config->size,
                                 .index = config->index,
                                 .piece_max = dt_board_piece_max(config->size),
                                 .rounds_room = room};
    b->owner = me;
    b->serial = config->serial;
    b->ranks = calloc(config->size, sizeof(*b->ranks));
    b->pieces = calloc(room, sizeof(*b->pieces));
    b->seen = calloc(room * config->size, sizeof(*b->seen));
    b->released = calloc(config->size, sizeof(*b->released));
    b->piece = calloc(config->size, sizeof(*b->piece));
    b->release = calloc(config->size, sizeof(*b->release));
    if (!b->ranks || !b->pieces || !b->seen || !b->released || !b->piece ||
        !b->release)
        goto free_board;
    memcpy(b->ranks, config->ranks, config->size * sizeof(*b->ranks));
    b->next = me->boards;
    me->boards = b;
    *out = &b->board;
    return DT_SUCCESS;

free_board:
    free_board(b);
no_memory:
    return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a board");
}

static void sim_board_close(struct dt_board *board)
{
    if (!board)
        return;
    struct sim_board *b = board_of(board), **at = &b->owner->boards;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    free_board(b);
}

void dt_sim_overwrite_pieces(struct sim_rank *rank)
{
    for (struct sim_board *b = rank->boards; b; b = b->next)
        for (uint64_t i = 0; i < b->board.rounds_room; i++) {
            struct sim_piece *p = &b->pieces[i];
            if (!p->posted || p->copy || !p->len)
                continue;
            p->data = p->copy = malloc(p->len);
            p->posted = p->copy != NULL;
            if (p->copy)
                memset(p->copy, 0xdb, p->len);
        }
}

void dt_sim_close_boards(struct sim_rank *rank)
{
    while (rank->boards)
        sim_board_close(&rank->boards->board);
}

/* The board of the same communicator at another of its ranks, if it has opened
 * it by now. */
static struct sim_board *other(const struct sim_board *b, size_t index)
{
    struct sim_board *o = b->owner->sim->ranks[b->ranks[index]].boards;
    while (o && o->serial != b->serial)
        o = o->next;
    return o;
}

/* Have all ranks released all rounds below this one? */
static bool all_released(struct sim_board *b, uint64_t round)
{
    bool all = true;
    for (size_t i = 0; i < b->board.size; i++) {
        if (b->released[i] >= round)
            continue;
        b->release[i] = round;
        all = false;
    }
    return all;
}

static bool sim_post(struct dt_board *board, uint64_t round,
                     const struct dt_board_piece *piece, bool *in_place)
{
    struct sim_board *b = board_of(board);
    struct dt_sim *sim = b->owner->sim;
    uint64_t room = board->rounds_room;
    if (b->owner->failed ||
        (round >= room && !all_released(b, round - room + 1)))
        return false;
    struct sim_piece *p = &b->pieces[round % room];
    free(p->copy);
    *p = (struct sim_piece){.posted = true,
                            .round = round,
                            .data = piece->data,
                            .len = piece->len,
                            .notice = piece->notice};
    *in_place = dt_sim_random(sim, 2);
    if (!*in_place && piece->len) {
        p->data = p->copy = malloc(piece->len);
        if (!p->copy) {
            sim->out_of_memory = true;
            return false;
        }
        memcpy(p->copy, piece->data, piece->len);
        memset(p->copy + piece->hole, 0xa5, piece->hole_len);
    }
    for (size_t i = 0; i < board->size; i++) {
        size_t to = b->ranks[i];
        double delay = i == board->index
                           ? 0
                           : dt_sim_delay(sim, b->owner->rank, to, piece->len);
        b->seen[round % room * board->size + i] = sim->now + delay;
        if (i != board->index)
            dt_sim_later(sim, delay,
                         (struct sim_event){.kind = SIM_WAKE, .rank = to});
    }
    return true;
}

/* What a rank has posted in a round, or in a later one that uses its place;
 * NULL: nothing that this rank sees. */
static const struct sim_piece *find_piece(const struct sim_board *b,
                                          size_t index, uint64_t round)
{
    const struct sim_board *o = other(b, index);
    size_t size = b->board.size;
    uint64_t slot = round % b->board.rounds_room;
    if (!o || !o->pieces[slot].posted || o->pieces[slot].round < round ||
        o->seen[slot * size + b->board.index] > b->owner->sim->now)
        return NULL;
    if (!o->pieces[slot].copy && o->owner->dead && o->pieces[slot].len)
        return NULL; /* its memory went with it */
    return &o->pieces[slot];
}

static bool sim_read(struct dt_board *board, size_t index, uint64_t round,
                     struct dt_board_view *view)
{
    struct sim_board *b = board_of(board);
    const struct sim_piece *piece =
        b->owner->failed ? NULL : find_piece(b, index, round);
    if (!piece || piece->round != round) {
        b->piece[index] = round + 1;
        return false;
    }
    *view = (struct dt_board_view){piece->data, piece->len, piece->notice};
    return true;
}

static void sim_release(struct dt_board *board, uint64_t round)
{
    struct sim_board *b = board_of(board);
    struct dt_sim *sim = b->owner->sim;
    if (b->owner->failed || b->released[board->index] >= round)
        return;
    b->released[board->index] = round;
    for (size_t i = 0; i < board->size; i++)
        if (i != board->index)
            dt_sim_later(sim, dt_sim_delay(sim, b->owner->rank, b->ranks[i], 0),
                         (struct sim_event){.kind = SIM_RELEASE,
                                            .rank = b->ranks[i],
                                            .serial = b->serial,
                                            .index = board->index,
                                            .round = round});
}

void dt_sim_on_release(struct sim_rank *to, const struct sim_event *event)
{
    struct sim_board *b = to->boards;
    while (b && b->serial != event->serial)
        b = b->next;
    if (b && b->released[event->index] < event->round)
        b->released[event->index] = event->round;
}

static bool sim_released(struct dt_board *board, uint64_t round)
{
    return !board_of(board)->owner->failed &&
           all_released(board_of(board), round);
}

bool dt_sim_boards_need(const struct sim_rank *rank, size_t peer)
{
    for (const struct sim_board *b = rank->boards; b; b = b->next)
        for (size_t i = 0; i < b->board.size; i++)
            if (b->ranks[i] == peer && peer != rank->rank &&
                ((b->piece[i] && !find_piece(b, i, b->piece[i] - 1)) ||
                 b->released[i] < b->release[i]))
                return true;
    return false;
}

const struct dt_board_ops dt_sim_boards = {
    .open = sim_board_open,
    .close = sim_board_close,
    .post = sim_post,
    .read = sim_read,
    .release = sim_release,
    .released = sim_released,
};
