/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cut.h - how many pieces, and how many shards of each: what is worth a round
 * or a message of its own on this machine. The same on all ranks. */
#ifndef DT_COLL_ALGORITHM_CUT_H
#define DT_COLL_ALGORITHM_CUT_H

#include "coll/algorithm/algorithm.h"
#include "coll/algorithm/part.h"

#define DT_CUT_BYTES 64 /* no two ranks write to one cache line */

/* count elements in n pieces, each in one shard per rail. */
struct dt_cut {
    size_t count, elem; /* elements; bytes of one */
    size_t unit;        /* elements between two places to cut at */
    size_t n, nshards;
};

/* Pieces small enough for a round and to follow each other in a pipeline, but
 * of most bytes at most; shards between the nodes, or within the only one. */
struct dt_cut dt_cut(const struct dt_plan *plan, size_t count, size_t most);

struct dt_part dt_cut_piece(const struct dt_cut *cut, size_t i);

/* That of a local rank; empty if it has none. */
struct dt_part dt_cut_shard(const struct dt_cut *cut, struct dt_part piece,
                            size_t local);

/* Shards of so many bytes. */
size_t dt_cut_shards(const struct dt_plan *plan, size_t bytes);

/* Bytes of a round's piece, where there are rounds or not. */
size_t dt_cut_most(const struct dt_plan *plan);

/* The bytes that move in the time in which nothing does: fewer are not worth
 * their way. At least 1. */
size_t dt_cut_worth(double latency, double byte);

#endif
