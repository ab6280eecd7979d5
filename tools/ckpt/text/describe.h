/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* describe.h - sizes, indices and tensors as text. */
#ifndef DT_TOOLS_CKPT_TEXT_DESCRIBE_H
#define DT_TOOLS_CKPT_TEXT_DESCRIBE_H

#include "ckpt/format/format.h"

/* "1.50 GiB" into text. Returns text. */
#define SIZE_TEXT 16
const char *size_text(char text[SIZE_TEXT], uint64_t bytes);

/* "[3, 0]" into text. Returns text. */
#define INDEX_TEXT 700
const char *index_text(char text[INDEX_TEXT], int ndim, const int64_t *index);

/* "global", "replicated", "own", "blob" or "replicated blob". */
const char *kind_text(const struct dt_manifest_tensor *t);

/* The bytes of all slices of a tensor. */
size_t stored_bytes(const struct dt_manifest_tensor *t);

#endif
