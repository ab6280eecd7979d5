/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* uneven.c - sizes and overlaps of blocks. */
#include "coll/algorithm/uneven.h"

static size_t end_of(const struct dt_uneven *blocks, size_t r)
{
    return blocks->displs[r] + blocks->counts[r];
}

static bool meet(const struct dt_uneven *blocks, size_t a, size_t b)
{
    return blocks->counts[a] && blocks->counts[b] &&
           blocks->displs[a] < end_of(blocks, b) &&
           blocks->displs[b] < end_of(blocks, a);
}

/* Most often the blocks lie in the order of the ranks, which is seen in one
 * walk; else each is compared with each, so that nothing is allocated. */
static bool find_overlap(const struct dt_uneven *blocks, size_t *a, size_t *b)
{
    size_t end = 0, r = 0;
    for (; r < blocks->n; r++) {
        if (!blocks->counts[r])
            continue;
        if (blocks->displs[r] < end)
            break;
        end = end_of(blocks, r);
    }
    if (r == blocks->n)
        return false;
    for (*a = 1; *a < blocks->n; ++*a)
        for (*b = 0; *b < *a; ++*b)
            if (meet(blocks, *a, *b))
                return true;
    return false;
}

dt_result_t dt_uneven_check(const struct dt_uneven *blocks, const char *call,
                            const char *apart, size_t *extent, size_t *total,
                            struct dt_error *err)
{
    size_t last = 0, a, b;
    *total = 0;
    for (size_t r = 0; r < blocks->n; r++) {
        size_t end, bytes, at = blocks->displs ? blocks->displs[r] : *total;
        if (!blocks->counts[r])
            continue;
        if (__builtin_add_overflow(*total, blocks->counts[r], total) ||
            __builtin_add_overflow(at, blocks->counts[r], &end) ||
            __builtin_mul_overflow(end, blocks->elem, &bytes) ||
            bytes > PTRDIFF_MAX)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "%s: %zu elements at %zu for rank %zu do not "
                                "fit in memory",
                                call, blocks->counts[r], at, r);
        if (bytes > last)
            last = bytes;
    }
    if (apart && find_overlap(blocks, &a, &b))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: the blocks of ranks %zu and %zu overlap in "
                            "the receive buffer: look at counts and %s",
                            call, b, a, apart);
    *extent = last;
    return DT_SUCCESS;
}

bool dt_uneven_touch(const struct dt_uneven *blocks, uintptr_t base,
                     uintptr_t start, size_t len)
{
    for (size_t r = 0; r < blocks->n; r++) {
        uintptr_t block = base + blocks->displs[r] * blocks->elem;
        size_t bytes = blocks->counts[r] * blocks->elem;
        if (bytes && len && start < block + bytes && block < start + len)
            return true;
    }
    return false;
}
