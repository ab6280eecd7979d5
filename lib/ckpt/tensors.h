/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tensors.h - the tensors, slices and blobs that the program has named. */
#ifndef DT_CKPT_TENSORS_H
#define DT_CKPT_TENSORS_H

#include "ckpt/handle.h"

/* What has that name, or NULL. */
struct dt_ckpt_tensor *dt_tensors_find(const struct dt_ckpt *ckpt,
                                       const char *name);

/* A checksum of all names and types in their order. */
uint64_t dt_tensors_fingerprint(const struct dt_ckpt *ckpt);

/* Add or replace a blob. On success the handle owns data, which is from malloc;
 * NULL: the blob exists, but this rank has none. Errors: INVALID_ARG,
 * NO_MEMORY. */
dt_result_t dt_tensors_keep_blob(struct dt_ckpt *ckpt, const char *name,
                                 void *data, size_t bytes, bool replicated,
                                 struct dt_error *err);

/* Forget all names. */
void dt_tensors_clear(struct dt_ckpt *ckpt);

#endif
