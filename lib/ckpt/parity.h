/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* parity.h - the file of parity that a node keeps for its group.
 * doc/checkpoint.md draws it. */
#ifndef DT_CKPT_PARITY_H
#define DT_CKPT_PARITY_H

#include <sys/types.h>

#include "ckpt/redundancy.h"

#define DT_PARITY_HEADER 4096 /* bytes before the first piece */
#define DT_PARITY_NAME   64

/* What it must be. */
struct dt_parity {
    uint64_t tag;        /* of the save */
    int num_nodes, node; /* the node that keeps it */
    struct dt_redundancy_group group;
    size_t segment; /* bytes of each of its group.m pieces */
    size_t block;   /* bytes that one checksum covers */
};

/* longest: the most bytes that a node of the group has. */
void dt_parity_init(struct dt_parity *parity, uint64_t tag, int num_nodes,
                    int node, const struct dt_redundancy_group *group,
                    size_t longest);

void dt_parity_name(char name[DT_PARITY_NAME], int num_nodes, int node);

/* How many blocks a piece has, and where its byte at offset lies. */
size_t dt_parity_blocks(const struct dt_parity *parity);
off_t dt_parity_at(const struct dt_parity *parity, int piece, size_t offset);

/* Write len bytes of a piece, from offset. Errors: IO, NO_SPACE. */
dt_result_t dt_parity_write(int fd, const struct dt_parity *parity, int piece,
                            size_t offset, const void *data, size_t len,
                            struct dt_error *err);

/* Write what tells that it is whole, sum[m][blocks], and sync it. */
dt_result_t dt_parity_finish(int fd, const struct dt_parity *parity,
                             const uint64_t *sum, struct dt_error *err);

/* Open the one in the directory dirfd: the descriptor, or -1 if it is not
 * whole, not of this save, or not there. check: read the pieces, too, and
 * compare them with their sums. */
int dt_parity_open(int dirfd, const struct dt_parity *want, bool check);

#endif
