/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* part.h - cutting count elements into n parts as evenly as can be, the
 * larger ones first. */
#ifndef DT_COLL_ALGORITHM_PART_H
#define DT_COLL_ALGORITHM_PART_H

#include <stddef.h>

struct dt_part {
    size_t first, count; /* elements */
};

static inline struct dt_part dt_part(size_t count, size_t n, size_t i)
{
    size_t base = count / n, extra = count % n;
    return (struct dt_part){i * base + (i < extra ? i : extra),
                            base + (i < extra)};
}

/* The same, cut only at multiples of unit. */
static inline struct dt_part dt_part_unit(size_t count, size_t n, size_t i,
                                          size_t unit)
{
    struct dt_part part = dt_part(count / unit + (count % unit != 0), n, i);
    size_t first = part.first * unit, end = first + part.count * unit;
    if (first > count)
        first = count;
    return (struct dt_part){first, (end < count ? end : count) - first};
}

#endif
