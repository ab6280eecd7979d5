/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* safetensors.h - a file of tensors: the length of the header, the header as
 * JSON, the data. */
#ifndef DT_CKPT_FORMAT_SAFETENSORS_H
#define DT_CKPT_FORMAT_SAFETENSORS_H

#include "ckpt/format/tensor.h"

#define DT_SAFETENSORS_HEADER_MAX 100000000 /* the format's own limit, bytes   \
                                             */

struct dt_safetensors_entry {
    struct dt_tensor tensor;
    size_t offset; /* of its data, from the start of the file */
};

struct dt_safetensors {
    size_t count;
    struct dt_safetensors_entry *entry;
};

/* Lay out a file of count tensors: larger element types come first, which
 * aligns every tensor to its element size, and there are no gaps. offset[i] is
 * where the data of tensor[i] begins in the file; *header, which the caller
 * frees, is the beginning of the file, *header_len bytes; *size is the size of
 * the file. The same input gives the same bytes. The only error is NO_MEMORY.
 */
dt_result_t dt_safetensors_layout(size_t count,
                                  const struct dt_tensor *const *tensor,
                                  size_t *offset, char **header,
                                  size_t *header_len, size_t *size,
                                  struct dt_error *err);

/* Parse the header of len bytes of a file of size bytes. Every entry is inside
 * the file and has as many bytes as its shape. Errors: CORRUPT, NO_MEMORY. */
dt_result_t dt_safetensors_parse(struct dt_safetensors *st, const char *header,
                                 size_t len, size_t size, struct dt_error *err);

/* Read and parse the header of the file fd of size bytes. Errors: also IO. */
dt_result_t dt_safetensors_read(struct dt_safetensors *st, int fd, size_t size,
                                struct dt_error *err);

/* The entry of that name or NULL. */
const struct dt_safetensors_entry *
dt_safetensors_find(const struct dt_safetensors *st, const char *name);

/* Free what parse or read allocated. */
void dt_safetensors_clear(struct dt_safetensors *st);

#endif
