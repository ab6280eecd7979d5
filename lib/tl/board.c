/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board.c - what the ranks of one node show each other in rounds.
 *
 * How a board is found: its owner writes serial and offset into the directory
 * of its inbox, under the communicator's id.
 *
 *   serial there        offset   the board wanted
 *   0, or lower         any      is not there yet
 *   equal               > 0      is there
 *   equal               0        is closed: its owner has passed everything
 *   higher              any      is closed
 */
#include "tl/board.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is looked at while a rank has no board: no round is there. */
#define ROUNDS_MAX 16
static alignas(DT_RING_LINE) const
    char none[sizeof(struct dt_board_head) +
              ROUNDS_MAX * sizeof(struct dt_board_line)];

static struct dt_board_head *no_head(void)
{
    return (struct dt_board_head *)(uintptr_t)none;
}

#define LINE 64 /* of the processor's caches */

enum state { NOT_YET, OPEN, CLOSED };

/* The more ranks, the smaller their boards; together they do not fit into the
 * second-level caches, but into the third. */
static void size_up(struct dt_board *board)
{
    size_t n = board->size;
    board->piece_max = dt_piece_max(n);
    board->rounds_room = n <= 16 ? ROUNDS_MAX : 8;
}

static size_t head_len(const struct dt_shm_board *b)
{
    return sizeof(struct dt_board_head) +
           (size_t)b->board.rounds_room * sizeof(struct dt_board_line);
}

/* Where the slots begin: on a page of their own. */
static size_t slots_at(const struct dt_shm_board *b)
{
    return (head_len(b) + 4095) & ~(size_t)4095;
}

static size_t board_len(const struct dt_shm_board *b)
{
    return slots_at(b) + (size_t)b->board.rounds_room * b->board.piece_max;
}

/* The job's own communicator is sure to be used much: its pages are had before
 * that, and not by thousands of page faults one after the other. */
static void populate(const struct dt_shm_board *b, void *board, bool write)
{
    if (b->id == 0)
        dt_segment_populate(board, board_len(b), write);
}

/* ---- open and close ---- */

static dt_result_t place(struct dt_shm_board *b, struct dt_error *err)
{
    void *own;
    dt_result_t result = dt_segment_alloc(&b->shm->segments, board_len(b), &own,
                                          &b->own_offset, err);
    if (result != DT_SUCCESS)
        return result;
    populate(b, own, true);
    b->own = own;
    b->slots = (char *)own + slots_at(b);
    atomic_store_explicit(&b->own->serial, b->serial + 1, memory_order_release);
    struct dt_inbox_board *entry = &b->shm->box.boards[b->id];
    atomic_store_explicit(&entry->serial, 0, memory_order_release);
    atomic_store_explicit(&entry->offset, b->own_offset, memory_order_release);
    atomic_store_explicit(&entry->serial, b->serial + 1, memory_order_release);
    return DT_SUCCESS;
}

static bool meet(struct dt_shm_board *b, const struct dt_board_config *config)
{
    struct dt_shm *shm = b->shm;
    for (size_t i = 0; i < config->size; i++) {
        size_t rank = config->ranks[i];
        struct dt_board_peer *peer = &b->peer[i];
        peer->rank = rank;
        atomic_init(&peer->head, i == config->index ? b->own : no_head());
        if (i == config->index)
            continue;
        if (rank >= shm->size || shm->peer_of[rank] < 0)
            return false;
        struct dt_shm_peer *them = &shm->peers[shm->peer_of[rank]];
        peer->view = them->view;
        peer->page = them->box.page;
        if (them->box.page)
            peer->entry = &them->box.boards[config->id];
    }
    return true;
}

static void discard(struct dt_shm_board *b)
{
    while (b->nspare)
        free(b->spare[--b->nspare]);
    free(b);
}

dt_result_t dt_board_open(struct dt_tl *tl,
                          const struct dt_board_config *config,
                          struct dt_board **board, struct dt_error *err)
{
    struct dt_shm *shm = dt_shm_of(tl);
    if (config->id >= DT_INBOX_BOARDS || shm->boards[config->id])
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "board %u is in use, or above %d",
                            (unsigned)config->id, DT_INBOX_BOARDS - 1);
    struct dt_shm_board *b =
        calloc(1, sizeof(*b) + config->size * sizeof(b->peer[0]));
    if (!b)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    b->board = (struct dt_board){
        .tl = tl, .size = config->size, .index = config->index};
    b->shm = shm;
    b->id = config->id;
    b->serial = config->serial;
    size_up(&b->board);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    b->crowded = cores > 0 && shm->npeers >= (size_t)cores;
    b->mask = b->board.rounds_room - 1;
    b->bits = (unsigned)__builtin_popcountll(b->mask);
    b->room_until = b->board.rounds_room;
    dt_result_t result = DT_ERR_NO_MEMORY;
    b->spare[0] = malloc(config->size * sizeof(*b->spare[0]));
    b->nspare = b->spare[0] != NULL;
    if (!b->nspare)
        dt_error_set(err, result, "out of memory");
    else
        result = place(b, err);
    if (result != DT_SUCCESS) {
        discard(b);
        return result;
    }
    shm->boards[b->id] = b;
    if (!meet(b, config)) {
        dt_board_close(&b->board);
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "a board of ranks that are not on this node");
    }
    *board = &b->board;
    return DT_SUCCESS;
}

void dt_board_close(struct dt_board *board)
{
    if (!board)
        return;
    struct dt_shm_board *b = dt_board_of(board);
    b->shm->boards[b->id] = NULL;
    atomic_store_explicit(&b->shm->box.boards[b->id].offset, 0,
                          memory_order_release);
    dt_segment_free(&b->shm->segments, b->own);
    discard(b);
}

/* ---- finding those of the others ---- */

/* The transport fails as soon as its own thread looks. */
static void blame(struct dt_shm_board *b, size_t rank)
{
    atomic_store(errno == EFAULT ? &b->shm->damaged : &b->shm->unmapped,
                 (uint32_t)(rank + 1));
}

struct dt_board_buffer *dt_board_take_buffers(struct dt_shm_board *b)
{
    if (b->nspare)
        return b->spare[--b->nspare];
    return malloc(b->board.size * sizeof(*b->spare[0]));
}

void dt_board_give_buffers(struct dt_shm_board *b,
                           struct dt_board_buffer *buffers)
{
    if (b->nspare < DT_BOARD_SPARES)
        b->spare[b->nspare++] = buffers;
    else
        free(buffers);
}

void dt_board_blame(struct dt_shm_board *b, size_t index)
{
    errno = EFAULT;
    blame(b, b->peer[index].rank);
}

static enum state find(struct dt_shm_board *b, const struct dt_board_peer *peer,
                       struct dt_board_head **head)
{
    uint64_t wanted = b->serial + 1;
    if (!peer->entry)
        return NOT_YET;
    uint64_t serial =
        atomic_load_explicit(&peer->entry->serial, memory_order_acquire);
    uint64_t offset =
        atomic_load_explicit(&peer->entry->offset, memory_order_acquire);
    uint64_t again =
        atomic_load_explicit(&peer->entry->serial, memory_order_acquire);
    if (serial != wanted)
        return serial > wanted ? CLOSED : NOT_YET;
    if (again != wanted || !offset)
        return CLOSED;
    if (offset % DT_RING_LINE) {
        errno = EFAULT;
        blame(b, peer->rank);
        return NOT_YET;
    }
    void *at = dt_view_at(peer->view, offset, head_len(b));
    if (!at) {
        blame(b, peer->rank);
        return NOT_YET;
    }
    *head = at;
    return OPEN;
}

/* Its head, once it is there; NULL: not yet, or it is closed. */
static struct dt_board_head *head_of(struct dt_shm_board *b,
                                     struct dt_board_peer *peer)
{
    struct dt_board_head *head =
        atomic_load_explicit(&peer->head, memory_order_acquire);
    if (head != no_head())
        return head;
    if (find(b, peer, &head) != OPEN)
        return NULL;
    populate(b, head, false);
    atomic_store_explicit(&peer->head, head, memory_order_release);
    return head;
}

/* Has this rank passed all rounds below this one? One that has closed its
 * board has, whatever is where it was. */
static bool has_passed(struct dt_shm_board *b, struct dt_board_peer *peer,
                       uint64_t round)
{
    struct dt_board_head *head = head_of(b, peer);
    if (head &&
        atomic_load_explicit(&head->passed, memory_order_acquire) >= round)
        return true;
    return peer->entry && find(b, peer, &head) == CLOSED;
}

static bool has_shown(struct dt_shm_board *b, struct dt_board_peer *peer,
                      uint64_t round)
{
    struct dt_board_head *head = head_of(b, peer);
    if (!head)
        return false;
    uint64_t word = atomic_load_explicit(&head->lines[round & b->mask].word,
                                         memory_order_acquire);
    return word >> 1 > round;
}

bool dt_board_expects(struct dt_shm *shm, size_t rank)
{
    for (size_t id = 0; id < DT_INBOX_BOARDS; id++) {
        struct dt_shm_board *b = shm->boards[id];
        for (size_t i = 0; b && i < b->board.size; i++) {
            struct dt_board_peer *peer = &b->peer[i];
            uint64_t piece =
                atomic_load_explicit(&peer->piece, memory_order_relaxed);
            uint64_t pass =
                atomic_load_explicit(&peer->pass, memory_order_relaxed);
            if (peer->rank == rank &&
                ((piece && !has_shown(b, peer, piece - 1)) ||
                 (pass && !has_passed(b, peer, pass))))
                return true;
        }
    }
    return false;
}

/* ---- showing ---- */

/* Have all passed what is below round? If not, this rank waits for those. */
static bool all_passed(struct dt_shm_board *b, uint64_t round)
{
    bool all = true;
    for (size_t i = 0; i < b->board.size; i++) {
        struct dt_board_peer *peer = &b->peer[i];
        if (has_passed(b, peer, round))
            continue;
        atomic_store_explicit(&peer->pass, round, memory_order_relaxed);
        all = false;
    }
    return all;
}

bool dt_board_look_for_room(struct dt_shm_board *b, uint64_t round)
{
    const uint64_t room = b->board.rounds_room;
    if (!all_passed(b, round - room + 1))
        return false;
    /* perhaps there is more of it */
    uint64_t least =
        atomic_load_explicit(&b->own->passed, memory_order_relaxed);
    for (size_t i = 0; i < b->board.size; i++) {
        struct dt_board_head *head = head_of(b, &b->peer[i]);
        uint64_t passed =
            head ? atomic_load_explicit(&head->passed, memory_order_acquire)
                 : 0;
        if (passed < least)
            least = passed;
    }
    b->room_until = round + 1;
    if (least + room > b->room_until)
        b->room_until = least + room;
    return true;
}

static void copy_in(char *to, const struct dt_piece *piece)
{
    const char *from = piece->data;
    size_t after = piece->hole + piece->hole_len;
    if (!piece->hole_len) {
        memcpy(to, from, piece->len);
        return;
    }
    memcpy(to, from, piece->hole);
    memcpy(to + after, from + after, piece->len - after);
}

bool dt_board_post(struct dt_board *board, uint64_t round,
                   const struct dt_piece *piece, bool *in_place)
{
    struct dt_shm_board *b = dt_board_of(board);
    if (!dt_board_room(b, round))
        return false;
    struct dt_board_line *line = dt_board_line(b, round);
    line->len = (uint32_t)piece->len;
    line->kind = DT_LINE_AT;
    *in_place = false;
    if (piece->len <= DT_LINE_INLINE) {
        line->kind = DT_LINE_DATA;
        if (piece->len)
            memcpy(line->data, piece->data, piece->len);
    } else {
        line->buffer.offset =
            dt_segment_find(&b->shm->segments, piece->data, piece->len);
        *in_place = line->buffer.offset != 0;
    }
    if (line->kind == DT_LINE_AT && !*in_place) {
        char *slot = dt_board_slot(b, round, piece->len);
        copy_in(slot, piece);
        line->buffer.offset = dt_board_offset(b, slot);
    }
    dt_board_show(b, round, piece->note);
    return true;
}

void dt_board_pass(struct dt_board *board, uint64_t round)
{
    struct dt_shm_board *b = dt_board_of(board);
    atomic_store_explicit(&b->own->passed, round, memory_order_release);
    dt_board_wake(b);
}

bool dt_board_passed(struct dt_board *board, uint64_t round)
{
    struct dt_shm_board *b = dt_board_of(board);
    return round + board->rounds_room <= b->room_until || all_passed(b, round);
}

/* ---- short pieces, in a hurry ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void ask_to_write(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i += LINE)
#if defined(__x86_64__) /* where the builtin asks for a copy to read */
        __asm__ volatile("prefetchw %0" : : "m"(at[i]));
#else
        __builtin_prefetch(at + i, 1);
#endif
}

static void ask_to_read(uintptr_t at, size_t len)
{
    for (size_t i = 0; i < len; i += LINE)
        __builtin_prefetch((const void *)(at + i));
}

void dt_board_prepare(const struct dt_shm_board *b, uint64_t round, size_t len)
{
    if (b->crowded)
        return;
    ask_to_write((const char *)&b->own->lines[round & b->mask], 1);
    if (!dt_board_inline(b, len))
        ask_to_write(dt_board_slot(b, round, len),
                     least(len, DT_BOARD_AHEAD_OWN));
}

/* Until what this rank has written is seen by all; what it reads from then on,
 * it reads after that. A look that comes before the other's write takes the
 * line away from it, and costs both of them two more ways between the cores:
 * those who begin at the same time are done with writing at the same time. */
static void settle(void)
{
#if defined(__x86_64__) /* the fence of C11 is one that looks ahead */
    __asm__ volatile("mfence" : : : "memory");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

void dt_board_fetch(const struct dt_shm_board *b, uint64_t round, size_t len)
{
    if (b->crowded || dt_board_inline(b, len))
        return; /* a look is all it takes */
    const size_t most = DT_BOARD_AHEAD_READ / (b->board.size - 1);
    const size_t slot = slots_at(b) + dt_board_place(b, round, len);
    settle();
    for (size_t i = 0; i < b->board.size; i++) {
        if (i == b->board.index)
            continue;
        /* only asked for: it does not matter whether anything is there */
        const struct dt_board_head *head =
            atomic_load_explicit(&b->peer[i].head, memory_order_relaxed);
        ask_to_read((uintptr_t)&head->lines[round & b->mask], 1);
        ask_to_read((uintptr_t)head + slot, least(len, most));
    }
}

/* ---- looking ---- */

const struct dt_board_line *dt_board_look_again(struct dt_shm_board *b,
                                                size_t index, uint64_t round)
{
    struct dt_board_peer *peer = &b->peer[index];
    struct dt_board_head *head =
        atomic_load_explicit(&peer->head, memory_order_relaxed);
    if (head == no_head() && (head = head_of(b, peer)) &&
        !dt_shm_failed(b->shm)) {
        const struct dt_board_line *line = &head->lines[round & b->mask];
        if (atomic_load_explicit(&line->word, memory_order_acquire) >> 1 ==
            round + 1)
            return line;
    }
    atomic_store_explicit(&peer->piece, round + 1, memory_order_relaxed);
    return NULL;
}

char *dt_board_at(struct dt_shm_board *b, size_t index, uint64_t offset,
                  size_t len)
{
    struct dt_board_peer *peer = &b->peer[index];
    if (index == b->board.index)
        return dt_segment_at(&b->shm->segments, offset);
    char *at = dt_view_at(peer->view, offset, len);
    if (!at)
        blame(b, peer->rank);
    return at;
}

bool dt_board_peek(struct dt_board *board, size_t index, uint64_t round,
                   struct dt_view *view)
{
    struct dt_shm_board *b = dt_board_of(board);
    const struct dt_board_line *line = dt_board_look(b, index, round);
    return line && dt_board_see(b, index, line, view);
}
