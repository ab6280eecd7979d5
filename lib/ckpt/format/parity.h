/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* parity.h - the parity file that a node keeps for its redundancy set.
 * doc/checkpoint.md draws it. */
#ifndef DT_CKPT_FORMAT_PARITY_H
#define DT_CKPT_FORMAT_PARITY_H

#include <sys/types.h>

#include "ckpt/format/erasure.h"

#define DT_PARITY_HEADER 4096 /* bytes before the first parity block */
#define DT_PARITY_NAME   64   /* room for the name of the file */

/* What a parity file must be. */
struct dt_parity {
    uint64_t tag;        /* of the save */
    int num_nodes, node; /* the node that keeps it */
    struct dt_erasure_layout layout;
    size_t length; /* bytes of each data block, and of its layout.m parity
                    * blocks */
    size_t chunk;  /* bytes that one checksum covers */
};

/* longest: the bytes of the files of the node in the set that has most. */
void dt_parity_init(struct dt_parity *parity, uint64_t tag, int num_nodes,
                    int node, const struct dt_erasure_layout *layout,
                    size_t longest);

void dt_parity_name(char name[DT_PARITY_NAME], int num_nodes, int node);

/* The number of checksums of each parity block. */
size_t dt_parity_chunks(const struct dt_parity *parity);

/* Where byte `offset` of the parity block lies in the file. */
off_t dt_parity_at(const struct dt_parity *parity, int block, size_t offset);

/* Write len bytes of a parity block, from its byte `offset` on. Errors: IO,
 * NO_SPACE. */
dt_result_t dt_parity_write(int fd, const struct dt_parity *parity, int block,
                            size_t offset, const void *data, size_t len,
                            struct dt_error *err);

/* Write the checksums, sum[m][chunks], and the header, without which the file
 * does not count, and sync it. Errors: IO, NO_SPACE, NO_MEMORY. */
dt_result_t dt_parity_finish(int fd, const struct dt_parity *parity,
                             const uint64_t *sum, struct dt_error *err);

/* Open the parity file in the directory dirfd. Returns a descriptor, or -1 if
 * the file is not there, not complete or not of this save. With check, also the
 * parity blocks are read and compared with their checksums. */
int dt_parity_open(int dirfd, const struct dt_parity *want, bool check);

#endif
