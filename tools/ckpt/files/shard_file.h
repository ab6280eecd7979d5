/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shard_file.h - a safetensors file, written from streams of bytes. */
#ifndef DT_TOOLS_CKPT_FILES_SHARD_FILE_H
#define DT_TOOLS_CKPT_FILES_SHARD_FILE_H

#include "files/stream.h"

/* A tensor of the file. */
struct item {
    struct dt_tensor tensor; /* as in the header of the file */
    struct origin origin;
    /* in a checkpoint: the tensor that this is a part of, and where */
    const struct dt_tensor *whole;
    enum dt_manifest_kind kind;
    bool replicated;
    int64_t at[DT_TENSOR_DIMS_MAX];
    /* set by shard_file_write: where its data is, and the sum of each block */
    size_t offset;
    uint64_t *sum; /* to be freed */
};

/* Write n items to the empty file fd, which errors call path, and set file's
 * size, header and checksum. Errors: INVALID_ARG if two have the same name; IO,
 * NO_SPACE, NO_MEMORY and those of stream_next. */
dt_result_t shard_file_write(int fd, const char *path, struct item *item,
                             size_t n, struct dt_manifest_file *file,
                             struct dt_error *err);

/* Free what shard_file_write set, and items. */
void items_free(struct item *item, size_t n);

#endif
