/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* safetensors.h - one file of tensors: a length, a JSON header, the data. Any
 * reader of safetensors takes what is written here. */
#ifndef DT_CKPT_FORMAT_SAFETENSORS_H
#define DT_CKPT_FORMAT_SAFETENSORS_H

#include "ckpt/format/tensor.h"

#define DT_SAFETENSORS_HEADER_MAX 100000000 /* the format's own limit */

struct dt_safetensors_entry {
    struct dt_tensor tensor;
    size_t offset; /* of its data, from the start of the file */
};

struct dt_safetensors {
    size_t count;
    struct dt_safetensors_entry *entry;
};

/* Lay out a file of count tensors, larger element types first, which aligns
 * them all to their own size: offset[i] is where the data of tensor[i] goes,
 * from the start of the file; *header what it begins with, *header_len bytes,
 * to be freed by the caller; *size how long it is: there are no gaps. The same
 * input gives the same bytes. Only NO_MEMORY. */
dt_result_t dt_safetensors_layout(size_t count,
                                  const struct dt_tensor *const *tensor,
                                  size_t *offset, char **header,
                                  size_t *header_len, size_t *size,
                                  struct dt_error *err);

/* Parse the header of len bytes of a file of size bytes; every entry lies
 * inside the file and fits its shape. CORRUPT or NO_MEMORY otherwise. */
dt_result_t dt_safetensors_parse(struct dt_safetensors *st, const char *header,
                                 size_t len, size_t size, struct dt_error *err);

/* The same from the file fd of size bytes. Also IO. */
dt_result_t dt_safetensors_read(struct dt_safetensors *st, int fd, size_t size,
                                struct dt_error *err);

/* The entry of that name or NULL. */
const struct dt_safetensors_entry *
dt_safetensors_find(const struct dt_safetensors *st, const char *name);

/* Give back what parse or read allocated. */
void dt_safetensors_clear(struct dt_safetensors *st);

#endif
