/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* match.h - is a checkpoint of this program, and which of its slices does this
 * rank want where. Pure. */
#ifndef DT_CKPT_MATCH_H
#define DT_CKPT_MATCH_H

#include "ckpt/ckpt.h"
#include "ckpt/slice.h"

/* All bytes that slice and box have in common go to the memory at to, which
 * holds box. */
struct dt_want {
    const struct dt_manifest_tensor *tensor;
    const struct dt_manifest_slice *slice;
    struct dt_slice box;
    void *to;
};

/* A blob as this rank will have it. */
struct dt_match_blob {
    const struct dt_manifest_tensor *tensor;
    void *data; /* NULL: this rank has none */
    size_t bytes;
};

struct dt_match {
    size_t count;
    struct dt_want *want; /* in order of the files, within one of the offset */
    size_t blobs;
    struct dt_match_blob *blob; /* all there are, by name */
};

/* Errors: MISMATCH says what is not this program's; NO_MEMORY. What match
 * points to lives in ckpt, manifest and, until dt_match_clear, in match. */
dt_result_t dt_match(struct dt_match *match, const struct dt_ckpt *ckpt,
                     const struct dt_manifest *manifest, struct dt_error *err);

/* A blob whose data is NULL by then was given away. */
void dt_match_clear(struct dt_match *match);

#endif
