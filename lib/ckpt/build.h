/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* build.h - putting a manifest together, slice by slice, from whatever said
 * what there is: its JSON, a rank's part, the program. All checks of what a
 * manifest claims are here. */
#ifndef DT_CKPT_BUILD_H
#define DT_CKPT_BUILD_H

#include "ckpt/manifest.h"

struct dt_build_piece;

struct dt_build {
    bool unplaced; /* offsets are not known yet (version 1) */
    size_t nfiles, file_room;
    struct dt_manifest_file *file;
    size_t count, tensor_room;
    struct dt_manifest_tensor *tensor; /* in the order they came; no slices */
    int *named_by;                     /* [count] the first rank that did */
    size_t buckets, *bucket;           /* tensors by name: index + 1 */
    size_t pieces, piece_room;
    struct dt_build_piece *piece;
    size_t coords, coord_room;
    int64_t *coord;
    size_t sums, sum_room;
    uint64_t *sum;
};

/* A file. INVALID_ARG if its name is no name or its header is longer than it,
 * NO_MEMORY. */
dt_result_t dt_build_file(struct dt_build *build,
                          const struct dt_manifest_file *file,
                          struct dt_error *err);

/* The index of this tensor, which is new or is again named by that rank: then
 * it is the same (of a blob the number of bytes may differ). INVALID_ARG,
 * NO_MEMORY. */
dt_result_t dt_build_tensor(struct dt_build *build,
                            const struct dt_tensor *tensor,
                            enum dt_manifest_kind kind, bool replicated,
                            int rank, size_t *index, struct dt_error *err);

/* A slice of it, in one of the files; at NULL: all of it. INVALID_ARG if it is
 * not inside its tensor and its file, NO_MEMORY. */
dt_result_t dt_build_slice(struct dt_build *build, size_t index,
                           const struct dt_manifest_slice *slice,
                           struct dt_error *err);

/* Set the files, tensors and pool of manifest, and check that what
 * world_size ranks wrote is complete; world_size 0: it is only a part.
 * INVALID_ARG says what is wrong, NO_MEMORY. */
dt_result_t dt_build_finish(const struct dt_build *build, int world_size,
                            struct dt_manifest *manifest, struct dt_error *err);

void dt_build_clear(struct dt_build *build);

/* How many checksums bytes ask for. */
static inline size_t dt_build_blocks(size_t bytes)
{
    return bytes / DT_MANIFEST_BLOCK + (bytes % DT_MANIFEST_BLOCK > 0);
}

#endif
