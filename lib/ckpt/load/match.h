/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* match.h - whether a checkpoint matches the program, and which of its slices
 * this rank needs, and where. Pure. */
#ifndef DT_CKPT_LOAD_MATCH_H
#define DT_CKPT_LOAD_MATCH_H

#include "ckpt/handle.h"

/* The bytes that slice and box have in common go to the memory at to, which
 * holds box. */
struct dt_want {
    const struct dt_manifest_tensor *tensor;
    const struct dt_manifest_slice *slice;
    struct dt_slice box;
    void *to;
};

/* A blob that this rank will have. */
struct dt_match_blob {
    const struct dt_manifest_tensor *tensor;
    void *data; /* NULL: this rank has none, or ownership was transferred */
    size_t bytes;
};

struct dt_match {
    size_t count;
    struct dt_want *want; /* in order of the files, within one of the offset */
    size_t blobs;
    struct dt_match_blob *blob; /* of the checkpoint, by name */
};

/* Compare the manifest with what the program has named. match points into ckpt
 * and manifest. Errors: MISMATCH with the difference, NO_MEMORY. */
dt_result_t dt_match(struct dt_match *match, const struct dt_ckpt *ckpt,
                     const struct dt_manifest *manifest, struct dt_error *err);

/* Free match, and the data of the blobs that it still owns. */
void dt_match_clear(struct dt_match *match);

#endif
