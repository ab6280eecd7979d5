/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* verify.c - whether a file has the checksums of the manifest. */
#include "ckpt/format/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ckpt/format/checksum.h"
#include "ckpt/format/failure.h"

#define PIECE ((size_t)256 << 10) /* stays in the core's cache */

/* A range of the file that has a checksum. */
struct range {
    size_t at, len;
    uint64_t sum;
    const char *tensor; /* NULL: the header */
};

struct dt_verify {
    struct dt_checksum_parts sum; /* of the current range */
    size_t at;                    /* bytes so far */
    size_t count, next;
    struct range *range; /* [count], rising */
    const struct range *wrong;
};

/* ---- the ranges ---- */

static size_t blocks(const struct dt_manifest_slice *slice)
{
    return slice->sum ? dt_manifest_blocks(slice->bytes) : 0;
}

static size_t count_ranges(const struct dt_manifest *manifest, int file)
{
    size_t n = 1;
    for (size_t t = 0; t < manifest->count; t++)
        for (size_t s = 0; s < manifest->tensor[t].nslices; s++)
            if (manifest->tensor[t].slice[s].file == file)
                n += blocks(&manifest->tensor[t].slice[s]);
    return n;
}

static void add_slice(struct dt_verify *v, const char *tensor,
                      const struct dt_manifest_slice *slice)
{
    for (size_t i = 0; i < blocks(slice); i++) {
        size_t at = i * DT_MANIFEST_BLOCK, left = slice->bytes - at;
        v->range[v->count++] = (struct range){
            .at = slice->offset + at,
            .len = left < DT_MANIFEST_BLOCK ? left : DT_MANIFEST_BLOCK,
            .sum = slice->sum[i],
            .tensor = tensor,
        };
    }
}

static int by_place(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void add_ranges(struct dt_verify *v, const struct dt_manifest *manifest,
                       int file)
{
    const struct dt_manifest_file *f = &manifest->file[file];
    v->range[v->count++] = (struct range){
        .len = f->header > 0 ? f->header : f->size, .sum = f->checksum};
    for (size_t t = 0; t < manifest->count; t++) {
        const struct dt_manifest_tensor *tensor = &manifest->tensor[t];
        for (size_t s = 0; s < tensor->nslices; s++)
            if (tensor->slice[s].file == file)
                add_slice(v, tensor->tensor.name, &tensor->slice[s]);
    }
    /* the header comes first, even if it is empty */
    qsort(v->range + 1, v->count - 1, sizeof(*v->range), by_place);
}

/* ---- the bytes ---- */

/* The current range is complete. */
static void end_range(struct dt_verify *v)
{
    const struct range *range = &v->range[v->next++];
    if (!v->wrong && dt_checksum_end(&v->sum) != range->sum)
        v->wrong = range;
    dt_checksum_begin(&v->sum);
    /* ranges must not overlap */
    if (!v->wrong && v->next < v->count && v->range[v->next].at < v->at)
        v->wrong = &v->range[v->next];
}

dt_result_t dt_verify_begin(struct dt_verify **verify,
                            const struct dt_manifest *manifest, int file,
                            struct dt_error *err)
{
    size_t n = count_ranges(manifest, file);
    struct dt_verify *v = aligned_alloc(_Alignof(struct dt_verify), sizeof(*v));
    struct range *range = malloc(n * sizeof(*range));
    if (!v || !range) {
        free(v);
        free(range);
        return dt_no_memory(err);
    }
    *v = (struct dt_verify){.range = range};
    add_ranges(v, manifest, file);
    dt_checksum_begin(&v->sum);
    if (v->range[0].len == 0)
        end_range(v);
    *verify = v;
    return DT_SUCCESS;
}

void dt_verify_add(struct dt_verify *v, const void *data, size_t len)
{
    const char *from = data;
    while (len > 0 && v->next < v->count && !v->wrong) {
        const struct range *range = &v->range[v->next];
        bool inside = v->at >= range->at;
        size_t end = inside ? range->at + range->len : range->at;
        size_t n = end - v->at < len ? end - v->at : len;
        if (inside)
            dt_checksum_add(&v->sum, from, n);
        v->at += n;
        from += n;
        len -= n;
        if (inside && v->at == end)
            end_range(v);
    }
}

dt_result_t dt_verify_end(struct dt_verify *v, struct dt_error *err)
{
    if (v->wrong && v->wrong->tensor)
        return dt_error_set(err, DT_ERR_CORRUPT, "tensor %s: checksum differs",
                            v->wrong->tensor);
    if (v->wrong)
        return dt_error_set(err, DT_ERR_CORRUPT, "checksum differs");
    if (v->next < v->count)
        return dt_error_set(err, DT_ERR_CORRUPT, "truncated");
    return DT_SUCCESS;
}

void dt_verify_destroy(struct dt_verify *v)
{
    if (!v)
        return;
    free(v->range);
    free(v);
}

/* ---- a file ---- */

static dt_result_t read_all(struct dt_verify *v, int fd, size_t size,
                            struct dt_error *err)
{
    void *piece = malloc(PIECE);
    ssize_t n = 1;
    if (!piece)
        return dt_no_memory(err);
    for (size_t at = 0; at < size && n > 0; at += (size_t)n) {
        n = dt_file_read(fd, piece, size - at < PIECE ? size - at : PIECE,
                         (off_t)at);
        if (n > 0)
            dt_verify_add(v, piece, (size_t)n);
    }
    free(piece);
    if (n < 0)
        return dt_error_set(err, DT_ERR_CORRUPT, "%s", strerror(errno));
    return dt_verify_end(v, err);
}

dt_result_t dt_verify_file(const struct dt_manifest *manifest, int file, int fd,
                           struct dt_error *err)
{
    struct dt_verify *v;
    dt_result_t rc = dt_verify_begin(&v, manifest, file, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = read_all(v, fd, manifest->file[file].size, err);
    dt_verify_destroy(v);
    return rc;
}
