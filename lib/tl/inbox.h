/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* inbox.h - the shared memory in which a rank receives from its node's ranks.
 *
 * An inbox is a memfd, so it has no name to clean up: the others open it as
 * /proc/<pid>/fd/<fd>, and it is gone with the last process that maps it. Its
 * first page identifies it; then come one ring index per slot, and one ring
 * per slot. A slot is a sender's place among the ranks of the node. Whoever
 * comes first grows the file to its full size, and zeros are valid content,
 * so nobody waits for anybody. */
#ifndef DT_TL_INBOX_H
#define DT_TL_INBOX_H

#include "base/error.h"
#include "tl/ring.h"

/* How to find an inbox; a fixed layout, in the byte order of the node. */
struct dt_inbox_addr {
    uint32_t magic, version;
    int32_t pid, fd;
    uint32_t uid, reserved;
    uint64_t pid_namespace;
    uint64_t nonce;
};

struct dt_inbox_page; /* the first page */

struct dt_inbox {
    struct dt_inbox_page *page; /* the mapping; NULL: none */
    size_t len;
    size_t slots;
};

/* Make this process's inbox: *fd keeps it open for the others, *addr tells
 * them where. Errors: SYSTEM. */
dt_result_t dt_inbox_create(int *fd, struct dt_inbox_addr *addr,
                            struct dt_error *err);

/* Map one's own, with room for slots senders. Errors: SYSTEM. */
dt_result_t dt_inbox_map(int fd, size_t slots, struct dt_inbox *box,
                         struct dt_error *err);

/* Map that of rank. Errors: SYSTEM; VERSION when it is none of ours;
 * PROC_FAILED when its process is gone. */
dt_result_t dt_inbox_open(const struct dt_inbox_addr *addr, size_t rank,
                          size_t slots, struct dt_inbox *box,
                          struct dt_error *err);

/* The ring of slot, from where it stands now. */
void dt_inbox_ring(const struct dt_inbox *box, size_t slot,
                   struct dt_ring *ring);

/* One word for its owner, 0 at first; only the first posted counts. */
uint64_t dt_inbox_notice(const struct dt_inbox *box);
void dt_inbox_post_notice(const struct dt_inbox *box, uint64_t notice);

/* Unmap; a zeroed box is fine. */
void dt_inbox_unmap(struct dt_inbox *box);

#endif
