/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board.c - boards in the shared memory of one node, and memory of mem_alloc.
 *
 * How a peer finds a board: its owner writes serial and offset into the
 * directory of its inbox, under the communicator's id.
 *
 *   serial in it        offset   the board that is looked for
 *   0, or lower         any      is not open yet
 *   equal               > 0      is open
 *   equal               0        is closed: its owner has released everything
 *   higher              any      is closed
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tl/shm/shm.h"

/* The head of a peer whose board is not found yet: no round is posted. */
#define ROUNDS_MAX 16
static alignas(DT_BOARD_ALIGN) const
    char none[sizeof(struct dt_board_head) +
              ROUNDS_MAX * sizeof(struct dt_board_line)];

static struct dt_board_head *no_head(void)
{
    return (struct dt_board_head *)(uintptr_t)none;
}

#define CACHE_LINE 64

/* How many bytes are prefetched at most: of this rank's slot, to be written,
 * and of the slots of all others, to be read. */
#define PREFETCH_OWN   4096
#define PREFETCH_PEERS 1024

enum state { NOT_YET, OPEN, CLOSED };

/* The more ranks, the smaller their boards; together they do not fit into the
 * second-level caches, but into the third. */
static void size_up(struct dt_board *board)
{
    size_t n = board->size;
    board->piece_max = dt_board_piece_max(n);
    board->rounds_room = n <= 16 ? ROUNDS_MAX : 8;
}

static size_t head_bytes(const struct dt_shared_board *b)
{
    return sizeof(struct dt_board_head) +
           (size_t)b->board.rounds_room * sizeof(struct dt_board_line);
}

/* Where the slots begin: on a page of their own. */
static size_t slots_at(const struct dt_shared_board *b)
{
    return (head_bytes(b) + 4095) & ~(size_t)4095;
}

static size_t board_bytes(const struct dt_shared_board *b)
{
    return slots_at(b) + (size_t)b->board.rounds_room * b->board.piece_max;
}

/* The world's communicator is sure to be used much: get all pages of its board
 * now rather than by thousands of page faults later. */
static void populate(const struct dt_shared_board *b, void *board, bool write)
{
    if (b->id == 0)
        dt_segment_populate(board, board_bytes(b), write);
}

/* ---- open and close ---- */

static dt_result_t allocate(struct dt_shared_board *b, struct dt_error *err)
{
    void *own;
    dt_result_t result = dt_segment_alloc(&b->shm->segments, board_bytes(b),
                                          &own, &b->own_offset, err);
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

static bool find_peers(struct dt_shared_board *b,
                       const struct dt_board_config *config)
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
        if (!them->box.page)
            continue;
        peer->asleep = &them->box.page->asleep;
        peer->entry = &them->box.boards[config->id];
    }
    return true;
}

static void discard(struct dt_shared_board *b)
{
    while (b->nspare)
        free(b->spare[--b->nspare]);
    free(b);
}

static void board_close(struct dt_board *board)
{
    if (!board)
        return;
    struct dt_shared_board *b = board->shared;
    b->shm->boards[b->id] = NULL;
    atomic_store_explicit(&b->shm->box.boards[b->id].offset, 0,
                          memory_order_release);
    dt_segment_free(&b->shm->segments, b->own);
    discard(b);
}

static dt_result_t board_open(struct dt_tl *tl,
                              const struct dt_board_config *config,
                              struct dt_board **board, struct dt_error *err)
{
    struct dt_shm *shm = dt_shm_of(tl);
    if (config->id >= DT_INBOX_BOARDS || shm->boards[config->id])
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "board %u is in use, or above %d",
                            (unsigned)config->id, DT_INBOX_BOARDS - 1);
    struct dt_shared_board *b =
        calloc(1, sizeof(*b) + config->size * sizeof(b->peer[0]));
    if (!b)
        return dt_no_memory(err);
    b->board = (struct dt_board){.ops = &dt_shm_boards,
                                 .tl = tl,
                                 .size = config->size,
                                 .index = config->index,
                                 .shared = b};
    b->shm = shm;
    b->failed = &shm->failed;
    b->id = config->id;
    b->serial = config->serial;
    size_up(&b->board);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    b->oversubscribed = cores > 0 && shm->npeers >= (size_t)cores;
    b->mask = b->board.rounds_room - 1;
    b->bits = (unsigned)__builtin_popcountll(b->mask);
    b->room_until = b->board.rounds_room;
    dt_result_t result = DT_ERR_NO_MEMORY;
    b->spare[0] = malloc(config->size * sizeof(*b->spare[0]));
    b->nspare = b->spare[0] != NULL;
    if (!b->nspare)
        dt_error_set(err, result, "out of memory");
    else
        result = allocate(b, err);
    if (result != DT_SUCCESS) {
        discard(b);
        return result;
    }
    shm->boards[b->id] = b;
    if (!find_peers(b, config)) {
        board_close(&b->board);
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "a board of ranks that are not on this node");
    }
    *board = &b->board;
    return DT_SUCCESS;
}

/* ---- finding the boards of the others ---- */

/* The transport fails at its next progress or check. */
static void mark_bad(struct dt_shared_board *b, size_t rank)
{
    atomic_store(errno == EFAULT ? &b->shm->damaged : &b->shm->unmapped,
                 (uint32_t)(rank + 1));
}

void dt_board_mark_damaged(struct dt_shared_board *b, size_t index)
{
    errno = EFAULT;
    mark_bad(b, b->peer[index].rank);
}

static enum state find(struct dt_shared_board *b,
                       const struct dt_board_peer *peer,
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
    if (offset % DT_BOARD_ALIGN) {
        errno = EFAULT;
        mark_bad(b, peer->rank);
        return NOT_YET;
    }
    void *at = dt_segment_view_at(peer->view, offset, head_bytes(b));
    if (!at) {
        mark_bad(b, peer->rank);
        return NOT_YET;
    }
    *head = at;
    return OPEN;
}

/* The head of a peer's board; NULL: it is not open yet, or closed. */
static struct dt_board_head *head_of(struct dt_shared_board *b,
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

/* Has this rank released all rounds below this one? A rank that has closed its
 * board has, whatever its memory holds now. */
static bool has_released(struct dt_shared_board *b, struct dt_board_peer *peer,
                         uint64_t round)
{
    struct dt_board_head *head = head_of(b, peer);
    if (head &&
        atomic_load_explicit(&head->released, memory_order_acquire) >= round)
        return true;
    return peer->entry && find(b, peer, &head) == CLOSED;
}

static bool has_posted(struct dt_shared_board *b, struct dt_board_peer *peer,
                       uint64_t round)
{
    struct dt_board_head *head = head_of(b, peer);
    if (!head)
        return false;
    uint64_t flag = atomic_load_explicit(&head->lines[round & b->mask].flag,
                                         memory_order_acquire);
    return flag >> 1 > round;
}

bool dt_shm_boards_need(struct dt_shm *shm, size_t rank)
{
    for (size_t id = 0; id < DT_INBOX_BOARDS; id++) {
        struct dt_shared_board *b = shm->boards[id];
        for (size_t i = 0; b && i < b->board.size; i++) {
            struct dt_board_peer *peer = &b->peer[i];
            uint64_t piece =
                atomic_load_explicit(&peer->piece, memory_order_relaxed);
            uint64_t release =
                atomic_load_explicit(&peer->release, memory_order_relaxed);
            if (peer->rank == rank &&
                ((piece && !has_posted(b, peer, piece - 1)) ||
                 (release && !has_released(b, peer, release))))
                return true;
        }
    }
    return false;
}

/* ---- posting ---- */

/* Have all released what is below round? If not, this rank waits for those that
 * have not. */
static bool all_released(struct dt_shared_board *b, uint64_t round)
{
    bool all = true;
    for (size_t i = 0; i < b->board.size; i++) {
        struct dt_board_peer *peer = &b->peer[i];
        if (has_released(b, peer, round))
            continue;
        atomic_store_explicit(&peer->release, round, memory_order_relaxed);
        all = false;
    }
    return all;
}

bool dt_board_update_room(struct dt_shared_board *b, uint64_t round)
{
    const uint64_t room = b->board.rounds_room;
    if (!all_released(b, round - room + 1))
        return false;
    /* there may be room for more rounds than this one */
    uint64_t least =
        atomic_load_explicit(&b->own->released, memory_order_relaxed);
    for (size_t i = 0; i < b->board.size; i++) {
        struct dt_board_head *head = head_of(b, &b->peer[i]);
        uint64_t released =
            head ? atomic_load_explicit(&head->released, memory_order_acquire)
                 : 0;
        if (released < least)
            least = released;
    }
    b->room_until = round + 1;
    if (least + room > b->room_until)
        b->room_until = least + room;
    return true;
}

uint64_t dt_board_find(const struct dt_shared_board *b, const void *buf,
                       size_t len)
{
    return dt_segment_find(&b->shm->segments, buf, len);
}

void dt_board_wake(_Atomic uint32_t *asleep)
{
    dt_inbox_wake_sleeper(asleep);
}

static void copy_in(char *to, const struct dt_board_piece *piece)
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

static bool board_post(struct dt_board *board, uint64_t round,
                       const struct dt_board_piece *piece, bool *in_place)
{
    struct dt_shared_board *b = board->shared;
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
        line->buffer.offset = dt_board_find(b, piece->data, piece->len);
        *in_place = line->buffer.offset != 0;
    }
    if (line->kind == DT_LINE_AT && !*in_place) {
        char *slot = dt_board_slot(b, round, piece->len);
        copy_in(slot, piece);
        line->buffer.offset = dt_board_slot_offset(b, slot);
    }
    dt_board_publish(b, round, piece->notice);
    return true;
}

static void board_release(struct dt_board *board, uint64_t round)
{
    struct dt_shared_board *b = board->shared;
    atomic_store_explicit(&b->own->released, round, memory_order_release);
    dt_board_wake_all(b);
}

static bool board_released(struct dt_board *board, uint64_t round)
{
    struct dt_shared_board *b = board->shared;
    return round + board->rounds_room <= b->room_until ||
           all_released(b, round);
}

/* ---- prefetching ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void prefetch_write(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i += CACHE_LINE)
#if defined(__x86_64__) /* where the builtin prefetches for reading only */
        __asm__ volatile("prefetchw %0" : : "m"(at[i]));
#else
        __builtin_prefetch(at + i, 1);
#endif
}

static void prefetch_read(uintptr_t at, size_t len)
{
    for (size_t i = 0; i < len; i += CACHE_LINE)
        __builtin_prefetch((const void *)(at + i));
}

void dt_board_prefetch_own(const struct dt_shared_board *b, uint64_t round,
                           size_t len)
{
    if (b->oversubscribed)
        return;
    prefetch_write((const char *)&b->own->lines[round & b->mask], 1);
    if (!dt_board_inline(b, len))
        prefetch_write(dt_board_slot(b, round, len), least(len, PREFETCH_OWN));
}

/* Wait until all others can see what this rank has written. To read the line of
 * a peer before the peer has written it takes the cache line away from it, and
 * costs both of them two more transfers between their cores; ranks that begin
 * at the same time also end writing at the same time. */
static void drain_stores(void)
{
#if defined(__x86_64__) /* C11's fence is a locked operation: loads pass it */
    __asm__ volatile("mfence" : : : "memory");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

void dt_board_prefetch_peers(const struct dt_shared_board *b, uint64_t round,
                             size_t len)
{
    if (b->oversubscribed || dt_board_inline(b, len))
        return; /* it is all in one cache line */
    const size_t most = PREFETCH_PEERS / (b->board.size - 1);
    const size_t slot = slots_at(b) + dt_board_place(b, round, len);
    drain_stores();
    for (size_t i = 0; i < b->board.size; i++) {
        if (i == b->board.index)
            continue;
        /* a prefetch does no harm where nothing is mapped */
        const struct dt_board_head *head =
            atomic_load_explicit(&b->peer[i].head, memory_order_relaxed);
        prefetch_read((uintptr_t)&head->lines[round & b->mask], 1);
        prefetch_read((uintptr_t)head + slot, least(len, most));
    }
}

/* ---- reading ---- */

const struct dt_board_line *dt_board_find_line(struct dt_shared_board *b,
                                               size_t index, uint64_t round)
{
    struct dt_board_peer *peer = &b->peer[index];
    struct dt_board_head *head =
        atomic_load_explicit(&peer->head, memory_order_relaxed);
    if (head == no_head() && (head = head_of(b, peer)) && !dt_board_failed(b)) {
        const struct dt_board_line *line = &head->lines[round & b->mask];
        if (atomic_load_explicit(&line->flag, memory_order_acquire) >> 1 ==
            round + 1)
            return line;
    }
    atomic_store_explicit(&peer->piece, round + 1, memory_order_relaxed);
    return NULL;
}

char *dt_board_at(struct dt_shared_board *b, size_t index, uint64_t offset,
                  size_t len)
{
    struct dt_board_peer *peer = &b->peer[index];
    if (index == b->board.index)
        return dt_segment_at(&b->shm->segments, offset);
    char *at = dt_segment_view_at(peer->view, offset, len);
    if (!at)
        mark_bad(b, peer->rank);
    return at;
}

static bool board_read(struct dt_board *board, size_t index, uint64_t round,
                       struct dt_board_view *view)
{
    struct dt_shared_board *b = board->shared;
    const struct dt_board_line *line = dt_board_peer_line(b, index, round);
    return line && dt_board_view(b, index, line, view);
}

struct dt_board_buffer *dt_board_get_buffers(struct dt_shared_board *b)
{
    if (b->nspare)
        return b->spare[--b->nspare];
    return malloc(b->board.size * sizeof(*b->spare[0]));
}

void dt_board_put_buffers(struct dt_shared_board *b,
                          struct dt_board_buffer *buffers)
{
    if (b->nspare < DT_BOARD_SPARES)
        b->spare[b->nspare++] = buffers;
    else
        free(buffers);
}

/* ---- memory of mem_alloc ---- */

static dt_result_t mem_alloc(struct dt_tl *tl, size_t size, void **ptr,
                             struct dt_error *err)
{
    uint64_t offset;
    dt_result_t result =
        dt_segment_alloc(&dt_shm_of(tl)->segments, size, ptr, &offset, err);
    if (result == DT_SUCCESS)
        dt_segment_enlarge(*ptr, size);
    return result;
}

static dt_result_t mem_free(struct dt_tl *tl, void *ptr, struct dt_error *err)
{
    if (dt_segment_free(&dt_shm_of(tl)->segments, ptr))
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%p is not the start of memory that was allocated "
                        "here and not freed yet",
                        ptr);
}

static dt_result_t mem_keep(struct dt_tl *tl, void *ptr, size_t *size,
                            struct dt_error *err)
{
    return dt_segment_keep(&dt_shm_of(tl)->segments, ptr, size, err);
}

const struct dt_board_ops dt_shm_boards = {
    .open = board_open,
    .close = board_close,
    .post = board_post,
    .read = board_read,
    .release = board_release,
    .released = board_released,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .mem_keep = mem_keep,
};
