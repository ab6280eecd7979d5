/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* slice.c - boxes in a row-major array, and the runs of elements that two of
 * them have in common. */
#include "ckpt/format/slice.h"

#include <inttypes.h>
#include <stdlib.h>

dt_result_t dt_slice_check(const struct dt_slice *slice, const int64_t *shape,
                           struct dt_error *err)
{
    for (int d = 0; d < slice->ndim; d++)
        if (slice->at[d] < 0 || slice->extent[d] < 0 || shape[d] < 0 ||
            slice->at[d] > shape[d] ||
            slice->extent[d] > shape[d] - slice->at[d])
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "dimension %d: %" PRId64 " elements from "
                                "%" PRId64 " are not inside of %" PRId64,
                                d, slice->extent[d], slice->at[d], shape[d]);
    return DT_SUCCESS;
}

size_t dt_slice_count(const struct dt_slice *slice)
{
    size_t n = 1;
    for (int d = 0; d < slice->ndim; d++)
        n *= (size_t)slice->extent[d];
    return n;
}

bool dt_slice_common(const struct dt_slice *a, const struct dt_slice *b,
                     int64_t *at, int64_t *extent)
{
    for (int d = 0; d < a->ndim; d++) {
        int64_t a_end = a->at[d] + a->extent[d];
        int64_t b_end = b->at[d] + b->extent[d];
        int64_t end = a_end < b_end ? a_end : b_end;
        at[d] = a->at[d] > b->at[d] ? a->at[d] : b->at[d];
        if (end <= at[d])
            return false;
        extent[d] = end - at[d];
    }
    return true;
}

/* The index of an element in the row-major order of the box. */
static size_t index_in(const struct dt_slice *box, const int64_t *at)
{
    size_t index = 0;
    for (int d = 0; d < box->ndim; d++)
        index = index * (size_t)box->extent[d] + (size_t)(at[d] - box->at[d]);
    return index;
}

bool dt_slice_runs(const struct dt_slice *a, const struct dt_slice *b,
                   bool (*fn)(size_t from, size_t to, size_t n, void *arg),
                   void *arg)
{
    int64_t first[DT_TENSOR_DIMS_MAX], extent[DT_TENSOR_DIMS_MAX];
    int64_t at[DT_TENSOR_DIMS_MAX];
    if (!dt_slice_common(a, b, first, extent))
        return true;
    /* a run continues into the next row if both boxes have whole rows */
    int outer = a->ndim;
    size_t n = 1;
    while (outer > 0) {
        int d = --outer;
        n *= (size_t)extent[d];
        if (extent[d] != a->extent[d] || extent[d] != b->extent[d])
            break;
    }
    for (int d = 0; d < a->ndim; d++)
        at[d] = first[d];
    for (;;) {
        if (!fn(index_in(a, at), index_in(b, at), n, arg))
            return false;
        int d = outer - 1;
        while (d >= 0 && ++at[d] == first[d] + extent[d]) {
            at[d] = first[d];
            d--;
        }
        if (d < 0)
            return true;
    }
}

/* ---- overlap ----
 *
 * Boxes that a plane separates do not overlap. So a set is cut by all planes
 * across one dimension that pass through no box, each part by those across
 * another dimension, and so on: n log n for the grids that programs make. A
 * part that no plane cuts is compared pair by pair. */

struct range {
    size_t begin, end;
};

struct order {
    const struct dt_slice *box;
    int dim;
};

static int by_begin(const void *a, const void *b, void *arg)
{
    const struct order *order = arg;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    int64_t p = order->box[x].at[order->dim], q = order->box[y].at[order->dim];
    if (p != q)
        return p < q ? -1 : 1;
    return (x > y) - (x < y);
}

static int64_t end_of(const struct dt_slice *box, int dim)
{
    return box->at[dim] + box->extent[dim];
}

/* Cut index[range] across dim into part[]. Returns the number of parts. */
static size_t cut(const struct dt_slice *box, size_t *index, struct range range,
                  int dim, struct range *part)
{
    struct order order = {box, dim};
    size_t n = 0, begin = range.begin;
    qsort_r(index + range.begin, range.end - range.begin, sizeof(*index),
            by_begin, &order);
    int64_t end = end_of(&box[index[begin]], dim);
    for (size_t i = range.begin + 1; i < range.end; i++) {
        const struct dt_slice *next = &box[index[i]];
        if (next->at[dim] >= end) {
            part[n++] = (struct range){begin, i};
            begin = i;
        }
        if (end_of(next, dim) > end)
            end = end_of(next, dim);
    }
    part[n++] = (struct range){begin, range.end};
    return n;
}

/* index[range] is in order of the last dimension. */
static bool compare_pairs(const struct dt_slice *box, const size_t *index,
                          struct range range, size_t *a, size_t *b)
{
    int64_t at[DT_TENSOR_DIMS_MAX], extent[DT_TENSOR_DIMS_MAX];
    for (size_t i = range.begin; i < range.end; i++) {
        const struct dt_slice *x = &box[index[i]];
        int last = x->ndim - 1;
        for (size_t k = i + 1; k < range.end; k++) {
            const struct dt_slice *y = &box[index[k]];
            if (last >= 0 && y->at[last] >= end_of(x, last))
                break;
            if (dt_slice_common(x, y, at, extent)) {
                *a = index[i] < index[k] ? index[i] : index[k];
                *b = index[i] < index[k] ? index[k] : index[i];
                return true;
            }
        }
    }
    return false;
}

dt_result_t dt_slice_overlap(const struct dt_slice *box, size_t n, size_t *a,
                             size_t *b)
{
    dt_result_t rc = DT_SUCCESS;
    size_t used = 0, open = 0;
    size_t *index = calloc(n + 1, sizeof(*index));
    struct range *todo = calloc(n + 1, sizeof(*todo)); /* disjoint, not empty */
    if (!index || !todo) {
        rc = DT_ERR_NO_MEMORY;
        goto free_lists;
    }
    for (size_t i = 0; i < n; i++)
        if (dt_slice_count(&box[i]) > 0)
            index[used++] = i;
    if (used > 0)
        todo[open++] = (struct range){0, used};
    while (open > 0 && rc == DT_SUCCESS) {
        struct range range = todo[--open];
        size_t parts = range.end - range.begin == 1 ? 2 : 1;
        for (int d = 0; d < box[0].ndim && parts == 1; d++)
            if ((parts = cut(box, index, range, d, todo + open)) > 1)
                open += parts;
        if (parts == 1 && compare_pairs(box, index, range, a, b))
            rc = DT_ERR_INVALID_ARG;
    }
free_lists:
    free(todo);
    free(index);
    return rc;
}
