/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* slice.h - boxes in a row-major array, and the runs of elements that two of
 * them have in common. Pure. Except for dt_slice_check, boxes must be inside an
 * array whose number of bytes fits into a size_t. */
#ifndef DT_CKPT_FORMAT_SLICE_H
#define DT_CKPT_FORMAT_SLICE_H

#include "ckpt/format/tensor.h"

/* A box: its first element is at[ndim], its size extent[ndim]. Without
 * dimensions it is one element. */
struct dt_slice {
    int ndim;
    const int64_t *at, *extent;
};

/* INVALID_ARG, with the dimension, if the box is not inside shape[ndim]. */
dt_result_t dt_slice_check(const struct dt_slice *slice, const int64_t *shape,
                           struct dt_error *err);

size_t dt_slice_count(const struct dt_slice *slice); /* elements */

/* Set at[ndim] and extent[ndim] to the common box. False: there is none. */
bool dt_slice_common(const struct dt_slice *a, const struct dt_slice *b,
                     int64_t *at, int64_t *extent);

/* Call fn for each run of common elements that is contiguous in both boxes:
 * from is the index of its first element in the row-major order of a, to that
 * in b, n its length. Runs are as long as possible, and come in rising order of
 * to. Stops when fn returns false, and then returns false. */
bool dt_slice_runs(const struct dt_slice *a, const struct dt_slice *b,
                   bool (*fn)(size_t from, size_t to, size_t n, void *arg),
                   void *arg);

/* Check that no two of n boxes, all of the same number of dimensions, overlap.
 * Errors: INVALID_ARG, with two that do, *a < *b; NO_MEMORY. */
dt_result_t dt_slice_overlap(const struct dt_slice *box, size_t n, size_t *a,
                             size_t *b);

#endif
