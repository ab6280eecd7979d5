/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.h - allreduce between the ranks of one node, without a schedule, on
 * boards in shared memory. The caller numbers the rounds of the board, and
 * releases them. */
#ifndef DT_COLL_NODE_LOCAL_H
#define DT_COLL_NODE_LOCAL_H

#include "coll/algorithm/algorithm.h"
#include "tl/board.h"

struct dt_board_buffer;

/* How far one allreduce has come. */
struct dt_local {
    struct dt_board *board;
    const struct dt_shape *shape;
    const char *send;
    char *recv;
    uint64_t round; /* the first of its rounds */
    bool notice;    /* a rank that contributed had its notice */
    bool done;
    uint64_t released; /* how many of its rounds this rank has finished with;
                        * the caller tells the board */
    /* private */
    unsigned chunks; /* 0: the buffer is short */
    unsigned flags;
    size_t total, block;             /* bytes */
    size_t posted, reduced, fetched; /* chunks */
    struct dt_board_buffer *headers; /* of round 0, one per rank */
};

/* Ranks on a board that it can serve. */
#define DT_LOCAL_RANKS 64

/* Can it do this collective on this board, which may be NULL? */
bool dt_local_serves(const struct dt_board *board,
                     const struct dt_shape *shape);

/* How many rounds it takes: the same on all ranks. */
uint64_t dt_local_rounds(const struct dt_board *board,
                         const struct dt_shape *shape);

/* Begin, and make progress until done; true if anything moved. Board, shape and
 * buffers are borrowed until then. Never blocks. */
void dt_local_begin(struct dt_local *local, struct dt_board *board,
                    const struct dt_shape *shape, const void *sendbuf,
                    void *recvbuf, uint64_t round, bool notice);
bool dt_local_progress(struct dt_local *local);

/* Abandon one that will not be done, before the board is closed. Does nothing
 * if it is done or was never begun. */
void dt_local_drop(struct dt_local *local);

#endif
