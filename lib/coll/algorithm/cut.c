/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cut.c - how many pieces, and how many shards. */
#include "coll/algorithm/cut.h"

#define DEPTH   16                 /* pieces that fill a pipeline */
#define MESSAGE ((size_t)64 << 10) /* goes at once: longer ones ask first */

size_t dt_cut_worth(double latency, double byte)
{
    double bytes = latency / byte;
    return bytes < 1e9 ? dt_at_least((size_t)bytes, 1) : 1000000000;
}

size_t dt_cut_most(const struct dt_plan *plan)
{
    size_t max = plan->layout->piece_max;
    return max ? max : MESSAGE;
}

size_t dt_cut_shards(const struct dt_plan *plan, size_t bytes)
{
    const struct dt_tune *tune = plan->tune;
    size_t n = bytes / dt_cut_worth(tune->node_latency, tune->node_byte);
    return n > plan->layout->nrails ? plan->layout->nrails : dt_at_least(n, 1);
}

struct dt_cut dt_cut(const struct dt_plan *plan, size_t count, size_t most)
{
    const struct dt_tune *tune = plan->tune;
    size_t elem = dt_dtype_size(plan->shape->dtype);
    struct dt_cut cut = {.count = count,
                         .elem = elem,
                         .unit = DT_CUT_BYTES / elem,
                         .nshards = dt_cut_shards(plan, count * elem)};
    size_t bytes = dt_at_least(count * elem / DEPTH,
                               dt_cut_worth(tune->net_latency, tune->net_byte) *
                                   cut.nshards);
    if (bytes > dt_cut_most(plan))
        bytes = dt_cut_most(plan);
    if (bytes > most)
        bytes = most;
    size_t units = dt_at_least(bytes / elem / cut.unit, 1);
    cut.n = dt_ceiling(dt_ceiling(count, cut.unit), units);
    return cut;
}

struct dt_part dt_cut_piece(const struct dt_cut *cut, size_t i)
{
    return dt_part_unit(cut->count, cut->n, i, cut->unit);
}

struct dt_part dt_cut_shard(const struct dt_cut *cut, struct dt_part piece,
                            size_t local)
{
    if (local >= cut->nshards)
        return (struct dt_part){piece.first, 0};
    struct dt_part part =
        dt_part_unit(piece.count, cut->nshards, local, cut->unit);
    part.first += piece.first;
    return part;
}
