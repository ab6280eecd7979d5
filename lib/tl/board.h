/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board.h - the boards of shm, inside: for the shortest way on one node.
 *
 * A rank's board is a segment of its memory: a head, one line per open round,
 * and one slot per open round. Round r uses line and slot r modulo rounds_room.
 * What is shown is in the line itself, or the line tells where it is: in the
 * slot, or in memory of mem_alloc. A small piece takes another place in its
 * slot each time, since to write what a peer has just read costs several times
 * as much as to write what it has not seen for long. Round and length say which
 * place, so a rank knows where the others have theirs before it has seen their
 * lines, and where its own next one goes.
 *
 * Whatever is read of a peer is checked, or only compared. */
#ifndef DT_TL_BOARD_H
#define DT_TL_BOARD_H

#include "tl/shm.h"

#define DT_LINE_INLINE  112
#define DT_LINE_FIRST   48 /* of them in the same line of the processor's */
#define DT_BOARD_SPARES 4
/* What is asked for ahead of its time, at most: bytes to be written, and bytes
 * to be read, of all ranks. */
#define DT_BOARD_AHEAD_OWN  4096
#define DT_BOARD_AHEAD_READ 1024

/* Where a piece is in the file of its rank; and, for local.h, where results for
 * this rank may be written, or 0, and how long both are as a whole. */
struct dt_board_buffer {
    uint64_t offset, target, total;
};

struct dt_board_line {
    alignas(DT_RING_LINE) _Atomic uint64_t word; /* (round + 1) << 1 | note */
    uint32_t len;
    uint32_t kind;
    union {
        char data[DT_LINE_INLINE];
        struct dt_board_buffer buffer;
    };
};

enum dt_line_kind {
    DT_LINE_DATA,   /* is in the line */
    DT_LINE_AT,     /* is at offset */
    DT_LINE_BUFFER, /* is at offset, as the first of a buffer that is there as
                     * a whole: no more of it will be shown */
};

struct dt_board_head {
    alignas(DT_RING_LINE) _Atomic uint64_t serial; /* plus 1 */
    alignas(DT_RING_LINE) _Atomic uint64_t passed;
    struct dt_board_line lines[];
};

/* A rank of the board, as this one sees it; the own one is among them. */
struct dt_board_peer {
    struct dt_board_head *_Atomic head; /* of zeros while it has none */
    struct dt_view_of *view;            /* NULL: is gone, or is me */
    struct dt_inbox_page *page;         /* NULL: is gone, or is me */
    struct dt_inbox_board *entry;       /* the same */
    size_t rank;
    /* what was looked for in vain: a piece of the round before this one, and
     * that this is passed */
    _Atomic uint64_t piece, pass;
};

struct dt_shm_board {
    struct dt_board board;
    struct dt_shm *shm;
    uint32_t id;
    uint64_t serial;
    uint64_t mask; /* rounds_room - 1 */
    unsigned bits; /* of mask */
    bool crowded;  /* more ranks on this node than cores */
    struct dt_board_head *own;
    uint64_t own_offset;
    char *slots;
    struct dt_board_buffer *spare[DT_BOARD_SPARES];
    size_t nspare;
    uint64_t room_until; /* the first round for which there may be no room */
    struct dt_board_peer peer[];
};

/* The operations of tl.h. */
dt_result_t dt_board_open(struct dt_tl *tl,
                          const struct dt_board_config *config,
                          struct dt_board **board, struct dt_error *err);
void dt_board_close(struct dt_board *board);
bool dt_board_post(struct dt_board *board, uint64_t round,
                   const struct dt_piece *piece, bool *in_place);
bool dt_board_peek(struct dt_board *board, size_t index, uint64_t round,
                   struct dt_view *view);
void dt_board_pass(struct dt_board *board, uint64_t round);
bool dt_board_passed(struct dt_board *board, uint64_t round);

/* Does any board wait for this rank? */
bool dt_board_expects(struct dt_shm *shm, size_t rank);

/* ---- the parts of post and peek ---- */

static inline struct dt_shm_board *dt_board_of(struct dt_board *board)
{
    return (struct dt_shm_board *)board;
}

/* Look at who has passed what; false: no room for the round. */
bool dt_board_look_for_room(struct dt_shm_board *b, uint64_t round);

/* May this round be posted? */
static inline bool dt_board_room(struct dt_shm_board *b, uint64_t round)
{
    return (round < b->room_until || dt_board_look_for_room(b, round)) &&
           !dt_shm_failed(b->shm);
}

/* Where the piece of a round goes, len bytes, at most piece_max: as many places
 * as are that long, up to a power of two, take turns. From the first slot on;
 * the same on all ranks. */
static inline size_t dt_board_place(const struct dt_shm_board *b,
                                    uint64_t round, size_t len)
{
    size_t most = b->board.piece_max, step = 64;
    if (len > step)
        step = (size_t)1 << (64 - __builtin_clzll(len - 1));
    return (size_t)(round & b->mask) * most +
           ((size_t)(round >> b->bits) * step & (most - 1));
}

static inline char *dt_board_slot(const struct dt_shm_board *b, uint64_t round,
                                  size_t len)
{
    return b->slots + dt_board_place(b, round, len);
}

static inline uint64_t dt_board_offset(const struct dt_shm_board *b,
                                       const char *in_slot)
{
    return b->own_offset + (uint64_t)(in_slot - (const char *)b->own);
}

/* The line to fill before a round is shown. */
static inline struct dt_board_line *dt_board_line(struct dt_shm_board *b,
                                                  uint64_t round)
{
    return &b->own->lines[round & b->mask];
}

static inline void dt_board_wake(struct dt_shm_board *b)
{
    for (size_t i = 0; i < b->board.size; i++)
        if (b->peer[i].page)
            dt_inbox_wake(b->peer[i].page);
}

static inline void dt_board_show(struct dt_shm_board *b, uint64_t round,
                                 bool note)
{
    atomic_store_explicit(&dt_board_line(b, round)->word,
                          (round + 1) << 1 | note, memory_order_release);
    dt_board_wake(b);
}

/* ---- short pieces, in a hurry ---- */

/* Is it best in the line? It is not where it takes two of the processor's, and
 * those who wait take the first away while both are being written. */
static inline bool dt_board_inline(const struct dt_shm_board *b, size_t len)
{
    return len <= (b->crowded ? DT_LINE_INLINE : DT_LINE_FIRST);
}

/* This rank is through with a round, and may soon show as much in this one: the
 * memory for it becomes its own now, while it does other things. */
void dt_board_prepare(const struct dt_shm_board *b, uint64_t round, size_t len);

/* This rank has shown len bytes, as the others do: once they are seen by all,
 * fetch what the others show, line and slot at once, not one after the other.
 */
void dt_board_fetch(const struct dt_shm_board *b, uint64_t round, size_t len);

/* ---- looking ---- */

/* The line of a rank in a round after all, or NULL. */
const struct dt_board_line *dt_board_look_again(struct dt_shm_board *b,
                                                size_t index, uint64_t round);

/* The line of a rank in a round; NULL: it is not there yet. */
static inline const struct dt_board_line *
dt_board_look(struct dt_shm_board *b, size_t index, uint64_t round)
{
    const struct dt_board_head *head =
        atomic_load_explicit(&b->peer[index].head, memory_order_relaxed);
    const struct dt_board_line *line = &head->lines[round & b->mask];
    uint64_t word = atomic_load_explicit(&line->word, memory_order_acquire);
    if (word >> 1 != round + 1)
        return dt_board_look_again(b, index, round);
    return dt_shm_failed(b->shm) ? NULL : line;
}

static inline bool dt_board_noted(const struct dt_board_line *line)
{
    return atomic_load_explicit(&line->word, memory_order_relaxed) & 1;
}

/* len bytes, at most piece_max, at offset in the file of a rank; NULL: they are
 * not there, and the transport is going to fail. */
char *dt_board_at(struct dt_shm_board *b, size_t index, uint64_t offset,
                  size_t len);

/* A rank has shown nonsense; the transport is going to fail. */
void dt_board_blame(struct dt_shm_board *b, size_t index);

/* What a line shows; false: it is nonsense, and the transport is going to
 * fail. Everything is read once: it must not change between check and use. */
static inline bool dt_board_see(struct dt_shm_board *b, size_t index,
                                const struct dt_board_line *line,
                                struct dt_view *view)
{
    uint32_t len = *(const volatile uint32_t *)&line->len;
    uint32_t kind = *(const volatile uint32_t *)&line->kind;
    view->data = line->data;
    view->len = len;
    view->note = dt_board_noted(line);
    if (kind == DT_LINE_DATA) {
        if (len <= DT_LINE_INLINE)
            return true;
        dt_board_blame(b, index);
        return false;
    }
    if (len > b->board.piece_max) {
        dt_board_blame(b, index);
        return false;
    }
    uint64_t offset = *(const volatile uint64_t *)&line->buffer.offset;
    view->data = dt_board_at(b, index, offset, len);
    return view->data != NULL;
}

/* Room for one struct per rank, to be given back; NULL: none now. */
struct dt_board_buffer *dt_board_take_buffers(struct dt_shm_board *b);
void dt_board_give_buffers(struct dt_shm_board *b,
                           struct dt_board_buffer *buffers);

#endif
