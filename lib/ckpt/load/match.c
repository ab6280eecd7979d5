/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* match.c - whether a checkpoint matches the program, and which of its slices
 * this rank needs. */
#include "ckpt/load/match.h"

#include <stdlib.h>
#include <string.h>

/* ---- comparing ---- */

/* Replicated tensors and those in parts load into each other. */
static const char *kind_text(enum dt_manifest_kind kind, bool replicated)
{
    if (kind == DT_MANIFEST_BLOB)
        return "a blob";
    if (kind == DT_MANIFEST_OWN)
        return "each rank's own";
    return replicated ? "replicated" : "in parts of the ranks";
}

static dt_result_t compare(const struct dt_ckpt *ckpt,
                           const struct dt_manifest *manifest,
                           const struct dt_ckpt_tensor *ours,
                           const struct dt_manifest_tensor *theirs,
                           struct dt_error *err)
{
    const char *name = ours->type.name;
    char a[128], b[128];
    if (ours->kind == DT_MANIFEST_BLOB && theirs->kind == DT_MANIFEST_BLOB)
        return DT_SUCCESS;
    if (!dt_tensor_same_type(&ours->type, &theirs->tensor))
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "tensor %s is %s there and %s in the program", name,
                            dt_tensor_type(&theirs->tensor, a, sizeof(a)),
                            dt_tensor_type(&ours->type, b, sizeof(b)));
    if (ours->kind != theirs->kind)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "tensor %s is %s there and %s in the program", name,
                            kind_text(theirs->kind, theirs->replicated),
                            kind_text(ours->kind, ours->replicated));
    if (ours->kind == DT_MANIFEST_OWN && manifest->world_size != ckpt->size)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "tensor %s is each rank's own and was saved by "
                            "%d ranks; it loads on as many, this job has %d",
                            name, manifest->world_size, ckpt->size);
    return DT_SUCCESS;
}

/* Find the program's tensors in the manifest, found[i] for tensor i, and those
 * of the manifest in the program. Only blobs may be missing in either. */
static dt_result_t find_all(const struct dt_ckpt *ckpt,
                            const struct dt_manifest *manifest,
                            const struct dt_manifest_tensor **found, bool *seen,
                            struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < ckpt->count && rc == DT_SUCCESS; i++) {
        const struct dt_ckpt_tensor *ours = &ckpt->tensor[i];
        found[i] = dt_manifest_find(manifest, ours->type.name);
        if (found[i]) {
            seen[found[i] - manifest->tensor] = true;
            rc = compare(ckpt, manifest, ours, found[i], err);
        } else if (ours->kind != DT_MANIFEST_BLOB) {
            rc = dt_error_set(err, DT_ERR_MISMATCH,
                              "tensor %s of the program is not in it",
                              ours->type.name);
        }
    }
    for (size_t i = 0; i < manifest->count && rc == DT_SUCCESS; i++)
        if (!seen[i] && manifest->tensor[i].kind != DT_MANIFEST_BLOB)
            rc = dt_error_set(err, DT_ERR_MISMATCH,
                              "tensor %s in it is not in the program",
                              manifest->tensor[i].tensor.name);
    return rc;
}

/* ---- what this rank needs ---- */

/* Count it, and store it if match->want is allocated. */
static void want(struct dt_match *match, const struct dt_want *new)
{
    int64_t at[DT_TENSOR_DIMS_MAX], extent[DT_TENSOR_DIMS_MAX];
    const struct dt_slice slice = {new->tensor->tensor.ndim, new->slice->at,
                                   new->slice->extent};
    if (new->slice->bytes == 0 ||
        !dt_slice_common(&slice, &new->box, at, extent))
        return;
    if (match->want)
        match->want[match->count] = *new;
    match->count++;
}

static void want_tensor(struct dt_match *match, const struct dt_ckpt *ckpt,
                        const struct dt_ckpt_tensor *ours,
                        const struct dt_manifest_tensor *theirs)
{
    struct dt_want new = {.tensor = theirs,
                          .box = {ours->type.ndim, ours->at, ours->extent},
                          .to = ours->data};
    if (ours->kind == DT_MANIFEST_OWN) {
        new.slice = &theirs->slice[ckpt->rank];
        want(match, &new);
    }
    for (size_t k = 0; k < theirs->nslices; k++)
        if (ours->kind == DT_MANIFEST_GLOBAL) {
            new.slice = &theirs->slice[k];
            want(match, &new);
        }
}

static void want_all(struct dt_match *match, const struct dt_ckpt *ckpt,
                     const struct dt_manifest_tensor *const *found)
{
    match->count = 0;
    for (size_t i = 0; i < ckpt->count; i++)
        if (ckpt->tensor[i].kind != DT_MANIFEST_BLOB)
            want_tensor(match, ckpt, &ckpt->tensor[i], found[i]);
    for (size_t i = 0; i < match->blobs; i++) {
        const struct dt_match_blob *blob = &match->blob[i];
        if (!blob->data)
            continue;
        const struct dt_manifest_slice *slice =
            &blob->tensor->slice[blob->tensor->replicated ? 0 : ckpt->rank];
        want(match, &(struct dt_want){.tensor = blob->tensor,
                                      .slice = slice,
                                      .box = {1, slice->at, slice->extent},
                                      .to = blob->data});
    }
}

static dt_result_t make_blobs(struct dt_match *match,
                              const struct dt_ckpt *ckpt,
                              const struct dt_manifest *manifest,
                              struct dt_error *err)
{
    match->blob = calloc(manifest->count + 1, sizeof(*match->blob));
    if (!match->blob)
        return dt_no_memory(err);
    for (size_t i = 0; i < manifest->count; i++) {
        const struct dt_manifest_tensor *t = &manifest->tensor[i];
        if (t->kind != DT_MANIFEST_BLOB)
            continue;
        struct dt_match_blob *blob = &match->blob[match->blobs++];
        blob->tensor = t;
        if (!t->replicated && (size_t)ckpt->rank >= t->nslices)
            continue; /* there were fewer ranks */
        blob->bytes = t->slice[t->replicated ? 0 : ckpt->rank].bytes;
        blob->data = malloc(blob->bytes + 1);
        if (!blob->data)
            return dt_no_memory(err);
    }
    return DT_SUCCESS;
}

static int by_place(const void *a, const void *b)
{
    const struct dt_manifest_slice *x = ((const struct dt_want *)a)->slice;
    const struct dt_manifest_slice *y = ((const struct dt_want *)b)->slice;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

dt_result_t dt_match(struct dt_match *match, const struct dt_ckpt *ckpt,
                     const struct dt_manifest *manifest, struct dt_error *err)
{
    struct dt_match new = {0};
    const struct dt_manifest_tensor **found =
        calloc(ckpt->count + 1, sizeof(*found));
    bool *seen = calloc(manifest->count + 1, sizeof(*seen));
    dt_result_t rc = found && seen ? DT_SUCCESS : dt_no_memory(err);
    if (rc == DT_SUCCESS)
        rc = find_all(ckpt, manifest, found, seen, err);
    if (rc == DT_SUCCESS)
        rc = make_blobs(&new, ckpt, manifest, err);
    if (rc == DT_SUCCESS) {
        want_all(&new, ckpt, found); /* counts */
        new.want = calloc(new.count + 1, sizeof(*new.want));
        if (!new.want)
            rc = dt_no_memory(err);
    }
    if (rc == DT_SUCCESS) {
        want_all(&new, ckpt, found);
        qsort(new.want, new.count, sizeof(*new.want), by_place);
        *match = new;
    } else {
        dt_match_clear(&new);
    }
    free(seen);
    free(found);
    return rc;
}

void dt_match_clear(struct dt_match *match)
{
    for (size_t i = 0; i < match->blobs; i++)
        free(match->blob[i].data);
    free(match->blob);
    free(match->want);
    *match = (struct dt_match){0};
}
