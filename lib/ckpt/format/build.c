/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* build.c - a manifest put together slice by slice. */
#include "ckpt/format/build.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/format/checksum.h"
#include "ckpt/format/failure.h"
#include "ckpt/format/slice.h"

/* A slice with indices instead of pointers, since the arrays still grow. */
struct dt_build_slice {
    size_t tensor, coord, sum;
    bool summed;
    struct dt_manifest_slice slice;
};

/* Make room for more elements of width bytes after the used ones. */
static bool reserve(void *array, size_t used, size_t more, size_t *room,
                    size_t width)
{
    void **at = array;
    if (more <= *room - used)
        return true;
    size_t want = used + more + used / 2 + 8;
    void *larger = reallocarray(*at, want, width);
    if (!larger)
        return false;
    *at = larger;
    *room = want;
    return true;
}

/* ---- files ---- */

static bool good_name(const char *name, size_t room)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    return memchr(name, '\0', room) && name[0] && name[0] != '.' &&
           name[strspn(name, allowed)] == '\0';
}

dt_result_t dt_build_file(struct dt_build *build,
                          const struct dt_manifest_file *file,
                          struct dt_error *err)
{
    if (!good_name(file->name, sizeof(file->name)))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "file %zu has a name that is none of slurm-dt's",
                            build->nfiles);
    if (file->size > INT64_MAX || file->header > file->size)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "file %s: a header of %zu bytes in %zu", file->name,
                            file->header, file->size);
    if (build->nfiles == INT32_MAX ||
        !reserve(&build->file, build->nfiles, 1, &build->file_room,
                 sizeof(*build->file)))
        return dt_no_memory(err);
    build->file[build->nfiles++] = *file;
    return DT_SUCCESS;
}

/* ---- tensors ---- */

/* The bucket that has the name, or an empty one for it. */
static size_t *find_bucket(const struct dt_build *build, const char *name)
{
    size_t mask = build->buckets - 1;
    size_t i = dt_checksum(name, strlen(name)) & mask;
    while (build->bucket[i] &&
           strcmp(build->tensor[build->bucket[i] - 1].tensor.name, name) != 0)
        i = (i + 1) & mask;
    return &build->bucket[i];
}

static bool grow_buckets(struct dt_build *build)
{
    if (2 * build->count < build->buckets)
        return true;
    size_t buckets = build->buckets ? 2 * build->buckets : 64;
    size_t *bucket = calloc(buckets, sizeof(*bucket));
    if (!bucket)
        return false;
    free(build->bucket);
    build->bucket = bucket;
    build->buckets = buckets;
    for (size_t i = 0; i < build->count; i++)
        *find_bucket(build, build->tensor[i].tensor.name) = i + 1;
    return true;
}

static const char *kind_text(enum dt_manifest_kind kind, bool replicated)
{
    if (kind == DT_MANIFEST_BLOB)
        return replicated ? "a replicated blob" : "a blob of each rank's own";
    if (kind == DT_MANIFEST_OWN)
        return "each rank's own";
    return replicated ? "replicated" : "spread over the ranks";
}

static dt_result_t check_same(const struct dt_build *build, size_t index,
                              const struct dt_manifest_tensor *new, int rank,
                              struct dt_error *err)
{
    const struct dt_manifest_tensor *old = &build->tensor[index];
    char a[128], b[128];
    if (old->kind != new->kind || old->replicated != new->replicated)
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "tensor %s is %s on rank %d and %s on rank %d", new->tensor.name,
            kind_text(old->kind, old->replicated), build->named_by[index],
            kind_text(new->kind, new->replicated), rank);
    if (new->kind != DT_MANIFEST_BLOB &&
        !dt_tensor_same_type(&old->tensor, &new->tensor))
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "tensor %s is %s on rank %d and %s on rank %d", new->tensor.name,
            dt_tensor_type(&old->tensor, a, sizeof(a)), build->named_by[index],
            dt_tensor_type(&new->tensor, b, sizeof(b)), rank);
    return DT_SUCCESS;
}

dt_result_t dt_build_tensor(struct dt_build *build,
                            const struct dt_tensor *tensor,
                            enum dt_manifest_kind kind, bool replicated,
                            int rank, size_t *index, struct dt_error *err)
{
    struct dt_manifest_tensor new = {
        .tensor = *tensor, .kind = kind, .replicated = replicated};
    if (kind == DT_MANIFEST_BLOB &&
        (tensor->dtype != DT_DTYPE_U8 || tensor->ndim != 1))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "blob %s is not a row of U8", tensor->name);
    if (kind == DT_MANIFEST_OWN && replicated)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s is each rank's own and replicated",
                            tensor->name);
    size_t room = build->tensor_room;
    if (!grow_buckets(build) ||
        !reserve(&build->named_by, build->count, 1, &room,
                 sizeof(*build->named_by)) ||
        !reserve(&build->tensor, build->count, 1, &build->tensor_room,
                 sizeof(*build->tensor)))
        return dt_no_memory(err);
    size_t *bucket = find_bucket(build, tensor->name);
    if (*bucket) {
        *index = *bucket - 1;
        return check_same(build, *index, &new, rank, err);
    }
    build->named_by[build->count] = rank;
    build->tensor[build->count++] = new;
    *bucket = build->count;
    if (kind == DT_MANIFEST_BLOB) { /* grows with its slices */
        struct dt_tensor *blob = &build->tensor[build->count - 1].tensor;
        blob->shape[0] = 0;
        blob->bytes = 0;
    }
    *index = build->count - 1;
    return DT_SUCCESS;
}

/* ---- slices ---- */

/* Is the box inside the tensor? A blob grows to the longest there is. */
static dt_result_t check_box(struct dt_tensor *tensor,
                             enum dt_manifest_kind kind,
                             const struct dt_slice *box, struct dt_error *err)
{
    struct dt_error why = {0};
    if (kind == DT_MANIFEST_BLOB) {
        int64_t shape = box->extent[0];
        if (box->at[0] != 0 || shape < 0)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "blob %s does not begin at 0 or is shorter",
                                tensor->name);
        if (shape > tensor->shape[0]) {
            tensor->shape[0] = shape;
            tensor->bytes = (size_t)shape;
        }
        return DT_SUCCESS;
    }
    if (dt_slice_check(box, tensor->shape, &why) != DT_SUCCESS)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "tensor %s: %s",
                            tensor->name, why.text);
    if (kind == DT_MANIFEST_OWN &&
        memcmp(box->extent, tensor->shape,
               (size_t)tensor->ndim * sizeof(int64_t)) != 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s is each rank's own, but not all of one "
                            "is there",
                            tensor->name);
    return DT_SUCCESS;
}

static dt_result_t check_place(const struct dt_build *build,
                               const struct dt_manifest_slice *slice,
                               const char *name, struct dt_error *err)
{
    if (slice->file < 0 || (size_t)slice->file >= build->nfiles)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s: is in file %d of %zu", name,
                            slice->file, build->nfiles);
    const struct dt_manifest_file *file = &build->file[slice->file];
    if (slice->rank != file->rank)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s: a part of rank %d's in a file of rank "
                            "%d's",
                            name, slice->rank, file->rank);
    if (!build->unplaced &&
        (slice->offset < file->header || slice->offset > file->size ||
         slice->bytes > file->size - slice->offset))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s: %zu bytes from byte %zu are not inside "
                            "%s, whose data is bytes %zu to %zu",
                            name, slice->bytes, slice->offset, file->name,
                            file->header, file->size);
    return DT_SUCCESS;
}

static bool add_slice(struct dt_build *build, size_t index,
                      const struct dt_manifest_slice *slice,
                      const struct dt_slice *box)
{
    size_t ndim = (size_t)box->ndim;
    size_t blocks = slice->sum ? dt_manifest_blocks(slice->bytes) : 0;
    struct dt_build_slice piece = {.tensor = index,
                                   .coord = build->coords,
                                   .sum = build->sums,
                                   .summed = slice->sum,
                                   .slice = *slice};
    if (!reserve(&build->slice, build->slices, 1, &build->slice_room,
                 sizeof(piece)) ||
        !reserve(&build->coord, build->coords, 2 * ndim, &build->coord_room,
                 sizeof(*build->coord)) ||
        !reserve(&build->sum, build->sums, blocks, &build->sum_room,
                 sizeof(*build->sum)))
        return false;
    for (size_t d = 0; d < ndim; d++) {
        build->coord[build->coords + d] = box->at[d];
        build->coord[build->coords + ndim + d] = box->extent[d];
    }
    for (size_t i = 0; i < blocks; i++)
        build->sum[build->sums + i] = slice->sum[i];
    build->coords += 2 * ndim;
    build->sums += blocks;
    build->slice[build->slices++] = piece;
    build->tensor[index].nslices++;
    return true;
}

dt_result_t dt_build_slice(struct dt_build *build, size_t index,
                           const struct dt_manifest_slice *slice,
                           struct dt_error *err)
{
    static const int64_t zeros[DT_TENSOR_DIMS_MAX];
    struct dt_manifest_tensor *t = &build->tensor[index];
    struct dt_slice box = {t->tensor.ndim, slice->at, slice->extent};
    int64_t length = (int64_t)slice->bytes; /* of a blob */
    if (!slice->at) {
        box.at = zeros;
        box.extent = t->kind == DT_MANIFEST_BLOB ? &length : t->tensor.shape;
    }
    dt_result_t rc = check_box(&t->tensor, t->kind, &box, err);
    if (rc != DT_SUCCESS)
        return rc;
    size_t bytes = dt_slice_count(&box) * dt_dtype_size(t->tensor.dtype);
    if (bytes != slice->bytes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s: a part of %zu bytes, expected %zu",
                            t->tensor.name, slice->bytes, bytes);
    rc = check_place(build, slice, t->tensor.name, err);
    if (rc == DT_SUCCESS && !add_slice(build, index, slice, &box))
        rc = dt_no_memory(err);
    return rc;
}

/* ---- finishing ---- */

static void *copy_of(const void *from, size_t n, size_t width)
{
    void *to = calloc(n + 1, width);
    if (to && n > 0)
        memcpy(to, from, n * width);
    return to;
}

static int by_name(const void *a, const void *b, void *arg)
{
    const struct dt_manifest_tensor *tensor = arg;
    return strcmp(tensor[*(const size_t *)a].tensor.name,
                  tensor[*(const size_t *)b].tensor.name);
}

/* The tensors by name, each with its slices in the order they came. */
static bool arrange(const struct dt_build *build, struct dt_manifest *m)
{
    size_t *order = calloc(build->count + 1, sizeof(*order));
    size_t *place = calloc(build->count + 1, sizeof(*place));
    bool done = order && place;
    for (size_t i = 0; i < build->count && done; i++)
        order[i] = i;
    if (done)
        qsort_r(order, build->count, sizeof(*order), by_name, build->tensor);
    struct dt_manifest_slice *slice = m->slices;
    for (size_t i = 0; i < build->count && done; i++) {
        m->tensor[i] = build->tensor[order[i]];
        m->tensor[i].slice = slice;
        slice += m->tensor[i].nslices;
        m->tensor[i].nslices = 0; /* counted again below */
        place[order[i]] = i;
    }
    for (size_t i = 0; i < build->slices && done; i++) {
        const struct dt_build_slice *piece = &build->slice[i];
        struct dt_manifest_tensor *t = &m->tensor[place[piece->tensor]];
        slice = &t->slice[t->nslices++];
        *slice = piece->slice;
        slice->at = m->coords + piece->coord;
        slice->extent = slice->at + t->tensor.ndim;
        slice->sum = piece->summed ? m->sums + piece->sum : NULL;
    }
    free(place);
    free(order);
    return done;
}

static int by_file_name(const void *a, const void *b)
{
    const struct dt_manifest_file *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static dt_result_t check_files(const struct dt_build *build,
                               struct dt_error *err)
{
    const struct dt_manifest_file **file =
        calloc(build->nfiles + 1, sizeof(*file));
    if (!file)
        return dt_no_memory(err);
    for (size_t i = 0; i < build->nfiles; i++)
        file[i] = &build->file[i];
    qsort(file, build->nfiles, sizeof(*file), by_file_name);
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 1; i < build->nfiles && rc == DT_SUCCESS; i++)
        if (strcmp(file[i]->name, file[i - 1]->name) == 0)
            rc = dt_error_set(err, DT_ERR_INVALID_ARG, "there are two files %s",
                              file[i]->name);
    free(file);
    return rc;
}

/* The slices of a tensor that is spread over the ranks. */
static dt_result_t check_cover(const struct dt_manifest_tensor *t,
                               struct dt_error *err)
{
    size_t a, b, bytes = 0;
    struct dt_slice *box = calloc(t->nslices + 1, sizeof(*box));
    if (!box)
        return dt_no_memory(err);
    for (size_t i = 0; i < t->nslices; i++)
        box[i] = (struct dt_slice){t->tensor.ndim, t->slice[i].at,
                                   t->slice[i].extent};
    dt_result_t rc = dt_slice_overlap(box, t->nslices, &a, &b);
    free(box);
    if (rc == DT_ERR_INVALID_ARG)
        return dt_error_set(err, rc,
                            "tensor %s: rank %d's part overlaps rank %d's",
                            t->tensor.name, t->slice[b].rank, t->slice[a].rank);
    if (rc != DT_SUCCESS)
        return dt_no_memory(err);
    for (size_t i = 0; i < t->nslices; i++)
        bytes += t->slice[i].bytes; /* they are disjoint: no more than all */
    if (bytes != t->tensor.bytes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s: the parts of all ranks leave a gap: "
                            "%zu of %zu bytes are there",
                            t->tensor.name, bytes, t->tensor.bytes);
    return DT_SUCCESS;
}

static dt_result_t check_tensor(const struct dt_manifest_tensor *t,
                                int world_size, struct dt_error *err)
{
    if (t->replicated && t->nslices != 1)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s is replicated, but is there %zu times",
                            t->tensor.name, t->nslices);
    if (t->kind == DT_MANIFEST_GLOBAL)
        return check_cover(t, err);
    if (t->replicated)
        return DT_SUCCESS;
    if (t->nslices != (size_t)world_size)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "tensor %s is each rank's own and there for %zu of "
                            "%d ranks",
                            t->tensor.name, t->nslices, world_size);
    for (int r = 0; r < world_size; r++)
        if (t->slice[r].rank != r)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "tensor %s: rank %d's own is not there once",
                                t->tensor.name, r);
    return DT_SUCCESS;
}

dt_result_t dt_build_finish(const struct dt_build *build, int world_size,
                            struct dt_manifest *manifest, struct dt_error *err)
{
    struct dt_manifest m = {.nfiles = build->nfiles, .count = build->count};
    m.file = copy_of(build->file, build->nfiles, sizeof(*m.file));
    m.tensor = calloc(build->count + 1, sizeof(*m.tensor));
    m.slices = calloc(build->slices + 1, sizeof(*m.slices));
    m.coords = copy_of(build->coord, build->coords, sizeof(*m.coords));
    m.sums = copy_of(build->sum, build->sums, sizeof(*m.sums));
    dt_result_t rc = DT_SUCCESS;
    if (!m.file || !m.tensor || !m.slices || !m.coords || !m.sums ||
        !arrange(build, &m))
        rc = dt_no_memory(err);
    if (rc == DT_SUCCESS)
        rc = check_files(build, err);
    for (size_t i = 0; world_size > 0 && i < m.count && rc == DT_SUCCESS; i++)
        rc = check_tensor(&m.tensor[i], world_size, err);
    if (rc != DT_SUCCESS) {
        dt_manifest_clear(&m);
        return rc;
    }
    manifest->nfiles = m.nfiles;
    manifest->file = m.file;
    manifest->count = m.count;
    manifest->tensor = m.tensor;
    manifest->slices = m.slices;
    manifest->coords = m.coords;
    manifest->sums = m.sums;
    return DT_SUCCESS;
}

void dt_build_clear(struct dt_build *build)
{
    free(build->file);
    free(build->tensor);
    free(build->named_by);
    free(build->bucket);
    free(build->slice);
    free(build->coord);
    free(build->sum);
    *build = (struct dt_build){0};
}
