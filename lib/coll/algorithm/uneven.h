/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* uneven.h - the blocks of a buffer of an uneven collective, one per rank. */
#ifndef DT_COLL_ALGORITHM_UNEVEN_H
#define DT_COLL_ALGORITHM_UNEVEN_H

#include "base/error.h"

struct dt_uneven {
    size_t n;             /* ranks */
    size_t elem;          /* bytes of an element */
    const size_t *counts; /* elements */
    const size_t *displs; /* elements; NULL: one behind the other */
};

/* Do they fit in memory? With the name of the displacements in apart, may none
 * overlap another, either; NULL allows it. *extent: bytes from the start of the
 * buffer to the end of the last block; *total: elements of all of them. Error
 * INVALID_ARG, which begins with the name of the call. */
dt_result_t dt_uneven_check(const struct dt_uneven *blocks, const char *call,
                            const char *apart, size_t *extent, size_t *total,
                            struct dt_error *err);

/* Has any of these checked blocks, in the buffer at base, memory in common with
 * len bytes at start? They have displacements. */
bool dt_uneven_touch(const struct dt_uneven *blocks, uintptr_t base,
                     uintptr_t start, size_t len);

#endif
