/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* redundancy_set.h - the nodes that protected each other when a checkpoint was
 * saved, and which rank holds what they saved. A "rank" is any number that the
 * caller gives to a holder: dt-ckpt counts directories. */
#ifndef DT_CKPT_FORMAT_REDUNDANCY_SET_H
#define DT_CKPT_FORMAT_REDUNDANCY_SET_H

#include "ckpt/format/parity.h"
#include "ckpt/format/span.h"

struct dt_redundancy_set {
    const int *holder; /* [nfiles] the rank that holds a file, or -1: lost */
    struct dt_erasure_layout layout;
    struct dt_parity parity; /* of the set; its node is for the caller to set */
    struct dt_span *span;    /* [layout.size] the files of each member */
    int32_t *parity_holder; /* [layout.size] the rank that holds the parity file
                             * of a member, or -1 */
};

/* The set of node when the checkpoint was saved; every parity file counts as
 * lost until the caller sets parity_holder. holder is borrowed. Errors: CORRUPT
 * if the scheme has no such set, NO_MEMORY. */
dt_result_t dt_redundancy_set_init(struct dt_redundancy_set *set,
                                   const struct dt_manifest *manifest,
                                   const int *holder,
                                   const struct dt_erasure *scheme, int node,
                                   struct dt_error *err);
void dt_redundancy_set_clear(struct dt_redundancy_set *set);

/* A range of one stripe in which each block lies in one place. */
struct dt_cut {
    int wanted; /* the block to compute */
    size_t len; /* bytes of each block */
    struct dt_cut_block {
        int number, holder; /* the rank that has it; -1: all its bytes are 0 */
        int file, node;     /* it is in this file or, if -1, in the parity file
                             * of that node */
        size_t offset;      /* from the start of that file */
    } use[255];             /* k of those that are there, rising */
};

/* Find the first range of the bytes from .. end-1 of a member's files, at most
 * limit bytes long. False if more than m blocks of its stripe are lost. */
bool dt_redundancy_set_cut(const struct dt_redundancy_set *set, int member,
                           size_t from, size_t end, size_t limit,
                           struct dt_cut *cut);

/* The same for a member's parity block of that number, from byte `from` of it
 * on. */
bool dt_redundancy_set_parity_cut(const struct dt_redundancy_set *set,
                                  int member, int parity, size_t from,
                                  size_t limit, struct dt_cut *cut);

/* Compute the factors: the wanted block is the sum of row[i] * use[i], row[k].
 * Errors: those of dt_erasure_row. */
dt_result_t dt_redundancy_set_row(const struct dt_redundancy_set *set,
                                  const struct dt_cut *cut, unsigned char *row,
                                  struct dt_error *err);

#endif
