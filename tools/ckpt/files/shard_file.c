/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shard_file.c - a safetensors file, written from streams of bytes. */
#include "files/shard_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ckpt/format/format.h"

/* ---- the data ---- */

/* The checksums of the blocks of a stream. */
struct sums {
    unsigned char *block;
    size_t filled, count;
    uint64_t *sum;
};

static void sums_end(struct sums *sums)
{
    if (sums->filled > 0)
        sums->sum[sums->count++] = dt_checksum(sums->block, sums->filled);
    sums->filled = 0;
}

static void sums_add(struct sums *sums, const unsigned char *data, size_t len)
{
    while (len > 0) {
        size_t n = DT_MANIFEST_BLOCK - sums->filled;
        n = n < len ? n : len;
        if (n == DT_MANIFEST_BLOCK) { /* no need to collect it */
            sums->sum[sums->count++] = dt_checksum(data, n);
        } else {
            memcpy(sums->block + sums->filled, data, n);
            sums->filled += n;
            if (sums->filled == DT_MANIFEST_BLOCK)
                sums_end(sums);
        }
        data += n;
        len -= n;
    }
}

static dt_result_t copy_stream(int fd, const char *path, struct stream *stream,
                               struct sums *sums, size_t bytes,
                               struct dt_error *err)
{
    const void *data;
    size_t len, done = 0;
    for (;;) {
        dt_result_t rc = stream_next(stream, &data, &len, err);
        if (rc != DT_SUCCESS)
            return rc;
        if (len == 0 || len > bytes - done)
            break;
        if (dt_file_write(fd, data, len))
            return dt_failed(err, path);
        sums_add(sums, data, len);
        done += len;
    }
    sums_end(sums);
    return len == 0 && done == bytes
               ? DT_SUCCESS
               : dt_error_set(err, DT_ERR_CORRUPT,
                              "%s: its source has not as many bytes as its "
                              "shape asks for",
                              path);
}

static dt_result_t write_item(int fd, const char *path, struct item *item,
                              unsigned char *block, struct dt_error *err)
{
    struct stream stream;
    size_t bytes = item->tensor.bytes;
    item->sum = calloc(bytes / DT_MANIFEST_BLOCK + 1, sizeof(*item->sum));
    if (!item->sum)
        return dt_no_memory(err);
    dt_result_t rc = stream_open(&stream, &item->origin, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct sums sums = {.block = block, .sum = item->sum};
    rc = copy_stream(fd, path, &stream, &sums, bytes, err);
    stream_close(&stream);
    return rc;
}

/* ---- the file ---- */

static int by_name(const void *a, const void *b)
{
    const struct dt_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static dt_result_t check_names(const struct dt_tensor **tensor, size_t n,
                               struct dt_error *err)
{
    qsort(tensor, n, sizeof(*tensor), by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(tensor[i - 1]->name, tensor[i]->name) == 0)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "two tensors would be called %s",
                                tensor[i]->name);
    return DT_SUCCESS;
}

static int by_offset(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->tensor.bytes > y->tensor.bytes) -
           (x->tensor.bytes < y->tensor.bytes);
}

/* Set the items' offsets, sort by them, and write the header. */
static dt_result_t write_header(int fd, const char *path, struct item *item,
                                size_t n, struct dt_manifest_file *file,
                                struct dt_error *err)
{
    char *header = NULL;
    const struct dt_tensor **tensor = calloc(n + 1, sizeof(*tensor));
    size_t *offset = calloc(n + 1, sizeof(*offset));
    dt_result_t rc = tensor && offset ? DT_SUCCESS : dt_no_memory(err);
    for (size_t i = 0; i < n && tensor; i++)
        tensor[i] = &item[i].tensor;
    if (rc == DT_SUCCESS)
        rc = check_names(tensor, n, err);
    for (size_t i = 0; i < n && tensor; i++)
        tensor[i] = &item[i].tensor;
    if (rc == DT_SUCCESS)
        rc = dt_safetensors_layout(n, tensor, offset, &header, &file->header,
                                   &file->size, err);
    if (rc != DT_SUCCESS)
        goto free_lists;
    if (file->header - 8 > DT_SAFETENSORS_HEADER_MAX)
        rc =
            dt_error_set(err, DT_ERR_INVALID_ARG,
                         "%s: too many tensors for one safetensors file", path);
    else if (dt_file_write(fd, header, file->header))
        rc = dt_failed(err, path);
    file->checksum = dt_checksum(header, file->header);
    for (size_t i = 0; i < n; i++)
        item[i].offset = offset[i];
    qsort(item, n, sizeof(*item), by_offset);
free_lists:
    free(header);
    free(offset);
    free(tensor);
    return rc;
}

dt_result_t shard_file_write(int fd, const char *path, struct item *item,
                             size_t n, struct dt_manifest_file *file,
                             struct dt_error *err)
{
    unsigned char *block = malloc(DT_MANIFEST_BLOCK);
    if (!block)
        return dt_no_memory(err);
    dt_result_t rc = write_header(fd, path, item, n, file, err);
    for (size_t i = 0; i < n && rc == DT_SUCCESS; i++)
        rc = write_item(fd, path, &item[i], block, err);
    free(block);
    return rc;
}

void items_free(struct item *item, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(item[i].sum);
    free(item);
}
