/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board.h - the contract of boards: what the ranks of a communicator that are
 * on one node show each other, and memory that all of them can read.
 *
 * The rounds of a board are numbered 0, 1, 2 ... In each round every rank may
 * post one piece, and all ranks read it where it is. A rank may post rounds in
 * any order, but round r only when all ranks have released round
 * r - rounds_room. A rank releases rounds, in rising order, when it will not
 * read their pieces any more.
 *
 * Failure. A rank that waits for a piece or for room needs its peer, as with a
 * pending request of the transport. After a failure of the transport nothing
 * new can be read, and post returns false.
 *
 * Threads. Different boards of one transport may be used by different threads
 * at the same time; all functions that take a struct dt_tl need the caller's
 * lock of that transport. No function blocks. */
#ifndef DT_TL_BOARD_H
#define DT_TL_BOARD_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tl/tl.h"

struct dt_board_config {
    uint32_t id;         /* of the communicator; may be reused after close */
    uint64_t serial;     /* equal on all its ranks, never used before */
    const size_t *ranks; /* those on this node, as world ranks; borrowed */
    size_t size, index;  /* how many they are, and which is this one */
};

struct dt_board {
    const struct dt_board_ops *ops;
    struct dt_tl *tl;
    size_t size, index;   /* ranks on this node, and which is this one */
    size_t piece_max;     /* dt_board_piece_max(size) */
    uint64_t rounds_room; /* rounds that can be open at once, at least 8 */
    struct dt_shared_board *shared; /* below; NULL in the simulator */
};

/* What to post: len bytes at data. The bytes of the hole need not be copied, as
 * no rank reads them. */
struct dt_board_piece {
    const void *data;
    size_t len;
    size_t hole, hole_len; /* offset and bytes */
    bool notice;           /* the notice bit, delivered with the piece */
};

/* What was posted. */
struct dt_board_view {
    const void *data; /* valid until this rank releases the round */
    size_t len;
    bool notice;
};

struct dt_board_ops {
    /* Make the board of a communicator; no message is sent. Errors: SYSTEM,
     * NO_MEMORY. */
    dt_result_t (*open)(struct dt_tl *tl, const struct dt_board_config *config,
                        struct dt_board **board, struct dt_error *err);

    /* Free it, when all its ranks have released all rounds or after a failure.
     * NULL is fine. */
    void (*close)(struct dt_board *board);

    /* Post a piece; false: there is no room yet. *in_place is true when the
     * piece lies in memory of mem_alloc: it is read there, so it must not be
     * changed before all ranks have released the round. Otherwise the piece
     * was copied. */
    bool (*post)(struct dt_board *board, uint64_t round,
                 const struct dt_board_piece *piece, bool *in_place);

    /* Read the piece of a rank, given as its index on the board; false: it is
     * not posted yet. A rank may read its own, too. */
    bool (*read)(struct dt_board *board, size_t index, uint64_t round,
                 struct dt_board_view *view);

    /* This rank has released all rounds below this one. */
    void (*release)(struct dt_board *board, uint64_t round);

    /* Have all ranks released all rounds below this one? */
    bool (*released)(struct dt_board *board, uint64_t round);

    /* Zeroed memory, aligned to a page, of which pieces are posted in place.
     * mem_free returns INVALID_ARG for any other pointer. Closing the transport
     * frees what is left. Errors: SYSTEM, NO_MEMORY. Both are NULL in the
     * simulator, as is mem_keep. */
    dt_result_t (*mem_alloc)(struct dt_tl *tl, size_t size, void **ptr,
                             struct dt_error *err);
    dt_result_t (*mem_free)(struct dt_tl *tl, void *ptr, struct dt_error *err);

    /* The transport is about to be closed, but this memory stays, private to
     * the process: *size bytes at the same address, which the caller unmaps.
     * Errors: INVALID_ARG as above, NO_MEMORY. */
    dt_result_t (*mem_keep)(struct dt_tl *tl, void *ptr, size_t *size,
                            struct dt_error *err);
};

/* The longest piece, in bytes, on a board of so many ranks: ranks of other
 * nodes know it, too. */
static inline size_t dt_board_piece_max(size_t ranks)
{
    return (size_t)(ranks <= 4 ? 128 : ranks <= 8 ? 64 : 32) << 10;
}

/* ---- boards in shared memory, for the allreduce of one node ----
 *
 * What follows does the work of post and read in parts, so that the allreduce
 * reduces straight from, and into, shared memory. tl/shm/board.c implements it.
 *
 * The board of a rank is a segment of its shared memory: a head, one line per
 * open round, and one slot per open round. Round r uses line and slot
 * r modulo rounds_room. A line holds a flag, a length and either the piece
 * itself or the offset at which it lies: in the slot, or in memory of
 * mem_alloc.
 *
 * A piece that is shorter than its slot lies in another place of the slot each
 * time the slot is used: writing to cache lines that a peer has just read costs
 * several times as much as writing to lines that it has not read for long.
 * Round and length determine the place, so a rank knows where the pieces of the
 * others lie before it has read their lines.
 *
 * Everything read from the memory of a peer is checked before it is used. */

#define DT_BOARD_ALIGN 128 /* two cache lines, which are fetched in pairs */
#define DT_LINE_INLINE 112 /* bytes of a piece that fit in a line */
#define DT_LINE_FIRST  48  /* of them in the first of its cache lines */

/* Where a buffer lies, as offsets in the shared memory of its rank. The
 * allreduce also uses the other two: where its result may be written, or 0, and
 * the bytes of the whole buffer. */
struct dt_board_buffer {
    uint64_t offset, target, total;
};

enum dt_line_kind {
    DT_LINE_DATA,   /* the piece is in the line */
    DT_LINE_AT,     /* the piece is at buffer.offset */
    DT_LINE_BUFFER, /* the same, and all later pieces of the buffer follow it
                     * there: they are not posted */
};

struct dt_board_line {
    alignas(DT_BOARD_ALIGN) _Atomic uint64_t flag; /* (round + 1) << 1 | notice
                                                    */
    uint32_t len;
    uint32_t kind;
    union {
        char data[DT_LINE_INLINE];
        struct dt_board_buffer buffer;
    };
};

struct dt_board_head {
    alignas(DT_BOARD_ALIGN) _Atomic uint64_t serial; /* plus 1 */
    alignas(DT_BOARD_ALIGN) _Atomic uint64_t released;
    struct dt_board_line lines[];
};

/* A rank of the board, as this rank sees it. */
struct dt_board_peer {
    struct dt_board_head *_Atomic head; /* a zeroed one until it is found */
    /* all NULL for this rank, and for a rank that has ended */
    struct dt_segment_view *view;
    struct dt_inbox_board *entry;
    _Atomic uint32_t *asleep; /* not 0 while the peer sleeps */
    size_t rank;              /* in the world */
    /* What this rank waits for: round + 1 of a piece, and the round up to which
     * the peer must have released; 0: nothing. */
    _Atomic uint64_t piece, release;
};

#define DT_BOARD_SPARES 4

struct dt_shared_board {
    struct dt_board board;
    struct dt_shm *shm;
    const _Atomic bool *failed; /* the transport has */
    uint32_t id;
    uint64_t serial;
    uint64_t mask;       /* rounds_room - 1 */
    unsigned bits;       /* of mask */
    bool oversubscribed; /* more ranks on this node than cores */
    struct dt_board_head *own;
    uint64_t own_offset;
    char *slots;
    struct dt_board_buffer *spare[DT_BOARD_SPARES];
    size_t nspare;
    uint64_t room_until; /* the first round for which there may be no room */
    struct dt_board_peer peer[];
};

static inline bool dt_board_failed(const struct dt_shared_board *b)
{
    return atomic_load_explicit(b->failed, memory_order_relaxed);
}

/* Read how far the others have released; false: there is no room for this
 * round. dt_board_room calls it if room_until is not beyond the round. */
bool dt_board_update_room(struct dt_shared_board *b, uint64_t round);

/* May this round be posted? */
static inline bool dt_board_room(struct dt_shared_board *b, uint64_t round)
{
    return (round < b->room_until || dt_board_update_room(b, round)) &&
           !dt_board_failed(b);
}

/* The offset, from the first slot on, of the place for a piece of len bytes, at
 * most piece_max. The same on all ranks. */
static inline size_t dt_board_place(const struct dt_shared_board *b,
                                    uint64_t round, size_t len)
{
    size_t most = b->board.piece_max, step = 64;
    if (len > step)
        step = (size_t)1 << (64 - __builtin_clzll(len - 1));
    return (size_t)(round & b->mask) * most +
           ((size_t)(round >> b->bits) * step & (most - 1));
}

static inline char *dt_board_slot(const struct dt_shared_board *b,
                                  uint64_t round, size_t len)
{
    return b->slots + dt_board_place(b, round, len);
}

/* The offset, in this rank's shared memory, of a byte in its slots. */
static inline uint64_t dt_board_slot_offset(const struct dt_shared_board *b,
                                            const char *in_slot)
{
    return b->own_offset + (uint64_t)(in_slot - (const char *)b->own);
}

/* The offset of len bytes at buf if they are in memory of mem_alloc, else 0. */
uint64_t dt_board_find(const struct dt_shared_board *b, const void *buf,
                       size_t len);

/* Is a piece of this length best posted in the line? Beyond, it would take both
 * cache lines of it, and a peer that polls takes the first one away while the
 * second is being written. */
static inline bool dt_board_inline(const struct dt_shared_board *b, size_t len)
{
    return len <= (b->oversubscribed ? DT_LINE_INLINE : DT_LINE_FIRST);
}

/* The line of this rank, to be filled before the round is published. */
static inline struct dt_board_line *dt_board_line(struct dt_shared_board *b,
                                                  uint64_t round)
{
    return &b->own->lines[round & b->mask];
}

/* Wake those of the others that sleep. */
void dt_board_wake(_Atomic uint32_t *asleep);
static inline void dt_board_wake_all(struct dt_shared_board *b)
{
    for (size_t i = 0; i < b->board.size; i++) {
        _Atomic uint32_t *asleep = b->peer[i].asleep;
        if (asleep && atomic_load_explicit(asleep, memory_order_relaxed))
            dt_board_wake(asleep);
    }
}

/* Set the flag of this rank's line: its piece is posted. */
static inline void dt_board_publish(struct dt_shared_board *b, uint64_t round,
                                    bool notice)
{
    atomic_store_explicit(&dt_board_line(b, round)->flag,
                          (round + 1) << 1 | notice, memory_order_release);
    dt_board_wake_all(b);
}

/* This rank may soon post a piece of len bytes in this round: prefetch the
 * cache lines that it would write, while the others still work. */
void dt_board_prefetch_own(const struct dt_shared_board *b, uint64_t round,
                           size_t len);

/* This rank has posted len bytes, as all others do: prefetch what it will read
 * of them, the line and the slot at once instead of one after the other. */
void dt_board_prefetch_peers(const struct dt_shared_board *b, uint64_t round,
                             size_t len);

/* dt_board_peer_line where the flag is not that of the round. */
const struct dt_board_line *dt_board_find_line(struct dt_shared_board *b,
                                               size_t index, uint64_t round);

/* The line of a rank in a round; NULL: it is not posted yet. */
static inline const struct dt_board_line *
dt_board_peer_line(struct dt_shared_board *b, size_t index, uint64_t round)
{
    const struct dt_board_head *head =
        atomic_load_explicit(&b->peer[index].head, memory_order_relaxed);
    const struct dt_board_line *line = &head->lines[round & b->mask];
    uint64_t flag = atomic_load_explicit(&line->flag, memory_order_acquire);
    if (flag >> 1 != round + 1)
        return dt_board_find_line(b, index, round);
    return dt_board_failed(b) ? NULL : line;
}

static inline bool dt_board_notice(const struct dt_board_line *line)
{
    return atomic_load_explicit(&line->flag, memory_order_relaxed) & 1;
}

/* len bytes, at most piece_max, at an offset in the shared memory of a rank;
 * NULL: they are not there, and the transport will fail. */
char *dt_board_at(struct dt_shared_board *b, size_t index, uint64_t offset,
                  size_t len);

/* A rank has posted what cannot be: the transport will fail. */
void dt_board_mark_damaged(struct dt_shared_board *b, size_t index);

/* The piece of a line; false: the line is damaged, and the transport will fail.
 * Each field is read once, as a peer may change it after it was checked. */
static inline bool dt_board_view(struct dt_shared_board *b, size_t index,
                                 const struct dt_board_line *line,
                                 struct dt_board_view *view)
{
    uint32_t len = *(const volatile uint32_t *)&line->len;
    uint32_t kind = *(const volatile uint32_t *)&line->kind;
    view->data = line->data;
    view->len = len;
    view->notice = dt_board_notice(line);
    if (len > (kind == DT_LINE_DATA ? DT_LINE_INLINE : b->board.piece_max)) {
        dt_board_mark_damaged(b, index);
        return false;
    }
    if (kind == DT_LINE_DATA)
        return true;
    uint64_t offset = *(const volatile uint64_t *)&line->buffer.offset;
    view->data = dt_board_at(b, index, offset, len);
    return view->data != NULL;
}

/* One struct dt_board_buffer per rank, to be returned by put; NULL: there is no
 * memory for it now. */
struct dt_board_buffer *dt_board_get_buffers(struct dt_shared_board *b);
void dt_board_put_buffers(struct dt_shared_board *b,
                          struct dt_board_buffer *buffers);

#endif
