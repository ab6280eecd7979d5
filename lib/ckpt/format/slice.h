/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* slice.h - boxes in a row-major array, and the runs of elements they have in
 * common. Pure. But for dt_slice_check, boxes are inside an array whose number
 * of bytes fits. */
#ifndef DT_CKPT_FORMAT_SLICE_H
#define DT_CKPT_FORMAT_SLICE_H

#include "ckpt/format/tensor.h"

/* A box: at[ndim] its first element, extent[ndim] its size. No dimensions: one
 * element. */
struct dt_slice {
    int ndim;
    const int64_t *at, *extent;
};

/* INVALID_ARG, with the dimension, if the box is not inside shape[ndim]. */
dt_result_t dt_slice_check(const struct dt_slice *slice, const int64_t *shape,
                           struct dt_error *err);

size_t dt_slice_count(const struct dt_slice *slice); /* elements */

/* The box that both have: false if there is none. at, extent: [ndim]. */
bool dt_slice_common(const struct dt_slice *a, const struct dt_slice *b,
                     int64_t *at, int64_t *extent);

/* Walk the elements that both boxes have, as runs that are contiguous in both:
 * from is the index of the run's first element in a's own row-major order, to
 * that in b's, n its length. The longest runs there are, in rising order of to.
 * Stops when fn returns false, and returns that. */
bool dt_slice_runs(const struct dt_slice *a, const struct dt_slice *b,
                   bool (*fn)(size_t from, size_t to, size_t n, void *arg),
                   void *arg);

/* SUCCESS if no two of the n boxes, all of as many dimensions, have an element
 * in common, else INVALID_ARG and two that do, *a < *b. Also NO_MEMORY. */
dt_result_t dt_slice_overlap(const struct dt_slice *box, size_t n, size_t *a,
                             size_t *b);

#endif
