/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* diff.c - dt-ckpt diff: how one checkpoint differs from another. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/format/format.h"
#include "files/floats.h"
#include "files/stream.h"
#include "text/describe.h"
#include "text/options.h"
#include "text/terminal.h"

struct diff {
    struct checkpoint *a, *b;
    json_t *all; /* the array of differences, or NULL: as text */
    size_t count;
    bool failed; /* no memory for one of them */
};

/* Of one tensor, or of one rank's. */
struct delta {
    size_t total, differ, first; /* elements */
    double largest;              /* NAN if a NaN met a number */
};

static void say(struct diff *diff, const char *name, const char *what,
                json_t *more)
{
    diff->count++;
    if (diff->all) {
        json_t *one = json_pack("{s:s, s:s}", "tensor", name, "what", what);
        diff->failed |= !one || (more && json_object_update(one, more)) ||
                        json_array_append(diff->all, one);
        json_decref(one);
    } else {
        print_line(stdout, "%s: %s", name, what);
    }
    json_decref(more);
}

/* ---- contents ---- */

static void compare_floats(struct delta *delta, dt_dtype_t dtype, const void *a,
                           const void *b, size_t i)
{
    double x = float_get(dtype, a, i), y = float_get(dtype, b, i);
    if (isnan(x) && isnan(y))
        return; /* of other bits */
    double d = x == y ? 0 : fabs(x - y);
    if (isnan(d) || d > delta->largest) /* never less than a NaN */
        delta->largest = d;
}

static void compare_piece(struct delta *delta, dt_dtype_t dtype, const char *a,
                          const char *b, size_t len)
{
    size_t size = dt_dtype_size(dtype), n = len / size;
    if (memcmp(a, b, len) == 0) {
        delta->total += n;
        return;
    }
    bool floats = is_float(dtype);
    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i * size, b + i * size, size) == 0)
            continue;
        if (delta->differ++ == 0)
            delta->first = delta->total + i;
        if (floats)
            compare_floats(delta, dtype, a, b, i);
    }
    delta->total += n;
}

static dt_result_t compare_streams(struct delta *delta, dt_dtype_t dtype,
                                   struct stream *a, struct stream *b,
                                   struct dt_error *err)
{
    for (;;) {
        const void *x, *y;
        size_t n, m;
        dt_result_t rc = stream_next(a, &x, &n, err);
        if (rc == DT_SUCCESS)
            rc = stream_next(b, &y, &m, err);
        if (rc != DT_SUCCESS || n == 0 || n != m)
            return rc;
        compare_piece(delta, dtype, x, y, n);
    }
}

static void describe_delta(struct diff *diff, const char *name,
                           const struct dt_manifest_tensor *t,
                           const struct delta *delta)
{
    char text[INDEX_TEXT + 200], where[INDEX_TEXT];
    int64_t index[DT_TENSOR_DIMS_MAX];
    size_t rest = delta->first;
    int ndim = t->kind == DT_MANIFEST_BLOB ? 1 : t->tensor.ndim;
    for (int i = ndim; i-- > 0;) {
        size_t dim = i == 0 ? SIZE_MAX : (size_t)t->tensor.shape[i];
        index[i] = (int64_t)(rest % dim);
        rest /= dim;
    }
    bool floats = is_float(t->tensor.dtype);
    int n = snprintf(
        text, sizeof(text), "%zu of %zu elements differ, the first is %s",
        delta->differ, delta->total, index_text(where, ndim, index));
    if (floats)
        snprintf(text + n, sizeof(text) - (size_t)n,
                 ", the largest difference %g", delta->largest);
    json_t *more = NULL;
    if (diff->all) {
        more = json_pack("{s:I, s:I}", "elements", (json_int_t)delta->total,
                         "differ", (json_int_t)delta->differ);
        if (floats) /* JSON has no NaN and no infinity */
            diff->failed |= json_object_set_new(more, "largest",
                                                isfinite(delta->largest)
                                                    ? json_real(delta->largest)
                                                    : json_null()) != 0;
    }
    say(diff, name, text, more);
}

static dt_result_t compare(struct diff *diff, const char *name,
                           const struct dt_manifest_tensor *x,
                           const struct dt_manifest_tensor *y, int rank,
                           struct dt_error *err)
{
    struct origin from_a = origin_of(diff->a, x, rank);
    struct origin from_b = origin_of(diff->b, y, rank);
    struct stream a, b;
    struct delta delta = {0};
    dt_result_t rc = stream_open(&a, &from_a, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = stream_open(&b, &from_b, err);
    if (rc == DT_SUCCESS) {
        char text[100];
        snprintf(text, sizeof(text), "%zu bytes in A, %zu in B", a.total,
                 b.total);
        if (a.total != b.total)
            say(diff, name, text, NULL);
        else
            rc = compare_streams(&delta, x->tensor.dtype, &a, &b, err);
        stream_close(&b);
    }
    stream_close(&a);
    if (rc == DT_SUCCESS && delta.differ > 0)
        describe_delta(diff, name, x, &delta);
    return rc;
}

/* ---- tensors ---- */

static dt_result_t compare_ranks(struct diff *diff,
                                 const struct dt_manifest_tensor *x,
                                 const struct dt_manifest_tensor *y,
                                 struct dt_error *err)
{
    char text[DT_TENSOR_NAME_MAX + 32];
    dt_result_t rc = DT_SUCCESS;
    int n = diff->a->manifest.world_size, m = diff->b->manifest.world_size;
    if (x->replicated && y->replicated)
        return compare(diff, x->tensor.name, x, y, 0, err);
    if (n != m) {
        snprintf(text, sizeof(text), "of %d ranks in A, of %d in B", n, m);
        say(diff, x->tensor.name, text, NULL);
    }
    for (int r = 0; r < n && r < m && rc == DT_SUCCESS; r++) {
        snprintf(text, sizeof(text), "%s of rank %d", x->tensor.name, r);
        rc = compare(diff, text, x, y, r, err);
    }
    return rc;
}

static dt_result_t compare_tensors(struct diff *diff,
                                   const struct dt_manifest_tensor *x,
                                   const struct dt_manifest_tensor *y,
                                   struct dt_error *err)
{
    char text[2100], a[1000], b[1000];
    if (x->kind != y->kind) {
        snprintf(text, sizeof(text), "%s in A, %s in B", kind_text(x),
                 kind_text(y));
    } else if (x->kind == DT_MANIFEST_BLOB) {
        return compare_ranks(diff, x, y, err);
    } else if (dt_tensor_same_type(&x->tensor, &y->tensor)) {
        return x->kind == DT_MANIFEST_OWN
                   ? compare_ranks(diff, x, y, err)
                   : compare(diff, x->tensor.name, x, y, 0, err);
    } else {
        snprintf(text, sizeof(text), "%s in A, %s in B",
                 dt_tensor_type(&x->tensor, a, sizeof(a)),
                 dt_tensor_type(&y->tensor, b, sizeof(b)));
    }
    say(diff, x->tensor.name, text, NULL);
    return DT_SUCCESS;
}

/* Both lists are sorted by name. */
static dt_result_t compare_all(struct diff *diff, struct dt_error *err)
{
    const struct dt_manifest *a = &diff->a->manifest, *b = &diff->b->manifest;
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0, j = 0;
         rc == DT_SUCCESS && (i < a->count || j < b->count);) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : strcmp(a->tensor[i].tensor.name,
                                             b->tensor[j].tensor.name);
        if (order == 0)
            rc = compare_tensors(diff, &a->tensor[i++], &b->tensor[j++], err);
        else if (order < 0)
            say(diff, a->tensor[i++].tensor.name, "only in A", NULL);
        else
            say(diff, b->tensor[j++].tensor.name, "only in B", NULL);
    }
    return rc;
}

static dt_result_t finish(struct diff *diff, struct dt_error *err)
{
    if (!diff->all)
        return DT_SUCCESS;
    if (diff->failed)
        return dt_no_memory(err);
    return print_json(json_pack("{s:s, s:s, s:b, s:O}", "a", diff->a->path, "b",
                                diff->b->path, "same", diff->count == 0,
                                "differences", diff->all),
                      err);
}

dt_result_t command_diff(const struct options *options, int *status,
                         struct dt_error *err)
{
    struct checkpoint a, b;
    struct diff diff = {.a = &a, .b = &b};
    dt_result_t rc = checkpoint_open(&a, options->arg[0], err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = checkpoint_open(&b, options->arg[1], err);
    if (rc != DT_SUCCESS)
        goto close_a;
    if (options->json && !(diff.all = json_array())) {
        rc = dt_no_memory(err);
        goto close_b;
    }
    bar_start("compare", a.bytes + b.bytes);
    rc = compare_all(&diff, err);
    progress_end();
    if (rc == DT_SUCCESS)
        rc = finish(&diff, err);
    *status = diff.count > 0;
    json_decref(diff.all);
close_b:
    checkpoint_close(&b);
close_a:
    checkpoint_close(&a);
    return rc;
}
