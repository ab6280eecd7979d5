/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_data.c - read gzipped IDX files: a big-endian magic number, one
 * 32-bit size per dimension, then the bytes. */
#include "fashion_data.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define IDX_IMAGES   0x00000803u /* unsigned bytes, 3 dimensions */
#define IDX_LABELS   0x00000801u
#define IDX_MAX      1000000u /* samples; more are refused as a damaged file */
#define IDX_DIM_SIDE 28

struct idx {
    gzFile file;
    char path[4096];
    char *why; /* the line for the user, size bytes */
    size_t size;
};

/* Every error text names the file and says how to get a good one. */
__attribute__((format(printf, 2, 3))) static int complain(const struct idx *idx,
                                                          const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(idx->why, idx->size,
             "%s: %s; apt-get install dataset-fashion-mnist, or say where "
             "the data are with --data DIR",
             idx->path, what);
    return -1;
}

static int idx_read(const struct idx *idx, void *to, size_t size)
{
    int got = gzread(idx->file, to, (unsigned)size);
    if (got >= 0 && (size_t)got == size)
        return 0;
    int code = Z_OK;
    gzerror(idx->file, &code);
    if (code == Z_OK || code == Z_BUF_ERROR)
        return complain(idx, "the file ends too early");
    return complain(idx, "%s", code == Z_ERRNO ? strerror(errno) : "damaged");
}

static int idx_u32(const struct idx *idx, uint32_t *value)
{
    uint8_t b[4];
    if (idx_read(idx, b, sizeof b))
        return -1;
    *value = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 |
             b[3];
    return 0;
}

/* The end of the file is where zlib compares its checksum. */
static int idx_end(const struct idx *idx)
{
    char more;
    int got = gzread(idx->file, &more, 1), code = Z_OK;
    gzerror(idx->file, &code);
    if (got > 0)
        return complain(idx, "more bytes than its header says");
    if (code == Z_BUF_ERROR)
        return complain(idx, "the file ends too early");
    return got ? complain(idx, "%s",
                          code == Z_ERRNO ? strerror(errno) : "damaged")
               : 0;
}

static int idx_header(const struct idx *idx, uint32_t magic, uint32_t *count)
{
    uint32_t found, side[2];
    if (idx_u32(idx, &found))
        return -1;
    if (found != magic)
        return complain(idx, "starts with 0x%08x, expected 0x%08x", found,
                        magic);
    if (idx_u32(idx, count))
        return -1;
    if (*count == 0 || *count > IDX_MAX)
        return complain(idx, "%u samples, expected 1 to %u", *count, IDX_MAX);
    if (magic == IDX_LABELS)
        return 0;
    if (idx_u32(idx, &side[0]) || idx_u32(idx, &side[1]))
        return -1;
    if (side[0] != IDX_DIM_SIDE || side[1] != IDX_DIM_SIDE)
        return complain(idx, "images of %u x %u, expected %d x %d", side[0],
                        side[1], IDX_DIM_SIDE, IDX_DIM_SIDE);
    return 0;
}

/* *count samples of width bytes each; the caller frees. */
static uint8_t *idx_load(struct idx *idx, uint32_t magic, size_t width,
                         size_t *count)
{
    uint8_t *bytes = NULL;
    uint32_t n = 0;
    errno = 0;
    idx->file = gzopen(idx->path, "rb");
    if (!idx->file) {
        complain(idx, "%s", strerror(errno ? errno : ENOMEM));
        return NULL;
    }
    if (idx_header(idx, magic, &n))
        goto close_file;
    bytes = malloc(n * width);
    if (!bytes) {
        complain(idx, "no memory for %u samples", n);
        goto close_file;
    }
    if (idx_read(idx, bytes, n * width) || idx_end(idx)) {
        free(bytes);
        bytes = NULL;
        goto close_file;
    }
    *count = n;
close_file:
    gzclose(idx->file);
    return bytes;
}

static int idx_path(struct idx *idx, const char *dir, const char *prefix,
                    const char *suffix)
{
    int len = snprintf(idx->path, sizeof idx->path, "%s/%s-%s-ubyte.gz", dir,
                       prefix, suffix);
    if (len < 0 || (size_t)len >= sizeof idx->path)
        return complain(idx, "the path is too long");
    return 0;
}

static int check_labels(const struct idx *idx, const struct dataset *set,
                        size_t nlabels)
{
    if (nlabels != set->count)
        return complain(idx, "%zu labels for %zu images", nlabels, set->count);
    for (size_t i = 0; i < nlabels; i++)
        if (set->labels[i] >= FASHION_CLASSES)
            return complain(idx, "label %zu is %d, expected 0 to %d", i,
                            set->labels[i], FASHION_CLASSES - 1);
    return 0;
}

int dataset_load(struct dataset *set, const char *dir, const char *prefix,
                 char *why, size_t size)
{
    struct idx idx = {.why = why, .size = size};
    struct dataset got = {0};
    size_t nlabels = 0;

    if (idx_path(&idx, dir, prefix, "images-idx3"))
        return -1;
    got.images = idx_load(&idx, IDX_IMAGES, FASHION_PIXELS, &got.count);
    if (!got.images || idx_path(&idx, dir, prefix, "labels-idx1"))
        goto destroy;
    got.labels = idx_load(&idx, IDX_LABELS, 1, &nlabels);
    if (!got.labels || check_labels(&idx, &got, nlabels))
        goto destroy;
    *set = got;
    return 0;
destroy:
    dataset_destroy(&got);
    return -1;
}

void dataset_destroy(struct dataset *set)
{
    free(set->images);
    free(set->labels);
    *set = (struct dataset){0};
}
