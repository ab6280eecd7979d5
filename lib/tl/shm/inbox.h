/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* inbox.h - the shared memory in which a rank receives from the ranks of its
 * node.
 *
 * An inbox is a memfd, so it has no name that would have to be removed: the
 * others open it as /proc/<pid>/fd/<fd>, and the kernel frees it with the last
 * process that maps it. Its first page identifies it; then come one ring index
 * per slot, one ring per slot, and a directory of the owner's boards. A slot is
 * the index of a sender among the ranks of the node. The first rank that maps
 * the file grows it to its full size, and zeros are valid content, so no rank
 * waits for another. Behind the inbox, from dt_inbox_end on, the file holds the
 * owner's boards and memory (segment.h). */
#ifndef DT_TL_SHM_INBOX_H
#define DT_TL_SHM_INBOX_H

#include "base/error.h"
#include "tl/shm/ring.h"

/* Where an inbox is, as on the card of a rank; in the byte order of the node.
 */
struct dt_inbox_addr {
    uint32_t magic, version;
    int32_t pid, fd;
    uint32_t uid, reserved;
    uint64_t pid_namespace;
    uint64_t nonce;
};

struct dt_inbox_page { /* the first page */
    uint32_t magic, version;
    uint64_t nonce;
    alignas(DT_RING_LINE) _Atomic uint64_t notice;
    alignas(DT_RING_LINE) _Atomic uint32_t asleep; /* a futex */
};

/* Where the owner's board of a communicator is; see board.c. */
#define DT_INBOX_BOARDS 256
struct dt_inbox_board {
    _Atomic uint64_t serial; /* plus 1; 0: none */
    _Atomic uint64_t offset; /* in the file; 0: closed */
};

struct dt_inbox {
    struct dt_inbox_page *page; /* the mapping; NULL: none */
    struct dt_inbox_board *boards;
    size_t len;
    size_t slots;
};

/* Make the inbox of this process. *fd, owned by the caller, must stay open
 * until the others have opened it at *addr. Errors: SYSTEM. */
dt_result_t dt_inbox_create(int *fd, struct dt_inbox_addr *addr,
                            struct dt_error *err);

/* Map this process's own, for so many senders. Errors: SYSTEM. */
dt_result_t dt_inbox_map(int fd, size_t slots, struct dt_inbox *box,
                         struct dt_error *err);

/* Map the inbox of a rank; *fd is its file, to be closed by the caller. Errors:
 * SYSTEM; VERSION when another libdt made it; PROC_FAILED when its process has
 * ended. */
dt_result_t dt_inbox_open(const struct dt_inbox_addr *addr, size_t rank,
                          size_t slots, struct dt_inbox *box, int *fd,
                          struct dt_error *err);

/* The first byte of the file behind an inbox of so many slots. */
size_t dt_inbox_end(size_t slots);

/* The ring of a slot, at its present indices. */
void dt_inbox_ring(const struct dt_inbox *box, size_t slot,
                   struct dt_ring *ring);

/* A number for the owner, 0 at first, which the first rank that posts one sets:
 * later ones are ignored. */
uint64_t dt_inbox_notice(const struct dt_inbox *box);
void dt_inbox_post_notice(const struct dt_inbox *box, uint64_t notice);

/* The owner sleeps until it is woken, at most us microseconds. The first of
 * several calls only announces the sleep and returns at once, so that its
 * caller can poll once more before it sleeps. */
void dt_inbox_sleep(const struct dt_inbox *box, unsigned us);

/* Wake the owner, after something was sent to it. There is no fence: a wake-up
 * may be lost when the owner falls asleep at the same moment, so sleeps are
 * short. dt_inbox_wake_sleeper takes the flag asleep of its page. */
void dt_inbox_wake_sleeper(_Atomic uint32_t *asleep);
static inline void dt_inbox_wake(struct dt_inbox_page *page)
{
    if (atomic_load_explicit(&page->asleep, memory_order_relaxed))
        dt_inbox_wake_sleeper(&page->asleep);
}

/* Unmap; a zeroed box is fine. */
void dt_inbox_unmap(struct dt_inbox *box);

#endif
