/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stream.h - the bytes of a tensor in row-major order, piece by piece, read
 * from its slices. */
#ifndef DT_TOOLS_CKPT_FILES_STREAM_H
#define DT_TOOLS_CKPT_FILES_STREAM_H

#include "files/checkpoint.h"

/* The source of the bytes. */
struct origin {
    /* of a checkpoint: the elements of tensor between the rows at and at + n
     * of its first dimension (0 and 1 if it has none); those of rank's own if
     * it is not global */
    struct checkpoint *checkpoint;
    const struct dt_manifest_tensor *tensor;
    int rank;
    int64_t at, n;
    /* else of a file */
    const char *path;
    size_t offset, bytes;
};

/* All of tensor, or all of rank's. */
struct origin origin_of(struct checkpoint *c,
                        const struct dt_manifest_tensor *tensor, int rank);

/* The slice of rank of a tensor that is not global, or NULL. */
const struct dt_manifest_slice *
own_slice(const struct dt_manifest_tensor *tensor, int rank);

struct stream {
    struct origin origin;
    int fd;                              /* of the file, or -1 */
    const struct dt_manifest_slice *own; /* the one slice, or NULL */
    size_t done, total, size;            /* bytes; size: of an element */
    int64_t next[DT_TENSOR_DIMS_MAX];    /* the next window's first element */
    unsigned char *piece, *raw;          /* STREAM_PIECE of memory each */
};

#define STREAM_PIECE ((size_t)4 * DT_MANIFEST_BLOCK)

/* NO_MEMORY. */
dt_result_t stream_open(struct stream *stream, const struct origin *origin,
                        struct dt_error *err);

/* Read the next piece, whole elements, valid until the next call; *len is 0 at
 * the end. Two streams of the same type and rows have pieces of equal lengths.
 * Errors: those of checkpoint_read; "interrupted". */
dt_result_t stream_next(struct stream *stream, const void **data, size_t *len,
                        struct dt_error *err);

void stream_close(struct stream *stream);

#endif
