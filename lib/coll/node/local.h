/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.h - allreduce between the ranks of one node, without a schedule: the
 * shortest way there is, on shared memory. */
#ifndef DT_COLL_NODE_LOCAL_H
#define DT_COLL_NODE_LOCAL_H

#include "coll/engine/shape.h"
#include "tl/board.h"

struct dt_board_buffer;

/* How far one allreduce has come. */
struct dt_local {
    struct dt_board *board;
    const struct dt_shape *shape;
    const char *send;
    char *recv;
    uint64_t round; /* its first */
    bool note;      /* any rank that fed it had its notice */
    bool done;
    uint64_t passed; /* its rounds, from the first on, this rank is through
                      * with; the caller tells the board */
    /* its own */
    unsigned chunks; /* 0: it is short */
    unsigned flags;
    size_t total, block; /* bytes */
    size_t posted, folded, fetched;
    struct dt_board_buffer *said;
};

/* Does it serve an allreduce on this board of shm? */
bool dt_local_serves(const struct dt_board *board,
                     const struct dt_shape *shape);

/* How many rounds it takes; the same on all ranks. */
uint64_t dt_local_rounds(const struct dt_board *board,
                         const struct dt_shape *shape);

/* Begin, and go on; true if anything moved. All borrowed until done. Never
 * blocks. */
void dt_local_begin(struct dt_local *local, struct dt_board *board,
                    const struct dt_shape *shape, const void *sendbuf,
                    void *recvbuf, uint64_t round, bool note);
bool dt_local_progress(struct dt_local *local);

/* The end of one that will not be done; before the board is closed. Nothing
 * happens to one that is done, or was never begun. */
void dt_local_drop(struct dt_local *local);

#endif
