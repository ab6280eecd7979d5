/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* build.h - a manifest put together slice by slice, from its JSON, from the
 * parts of the ranks or from what this rank wrote. All checks of what a
 * manifest claims are here. */
#ifndef DT_CKPT_FORMAT_BUILD_H
#define DT_CKPT_FORMAT_BUILD_H

#include "ckpt/format/manifest.h"

struct dt_build_slice;

/* Begins as {0}. */
struct dt_build {
    bool unplaced; /* offsets of slices are not known yet (version 1) */
    size_t nfiles, file_room;
    struct dt_manifest_file *file;
    size_t count, tensor_room;
    struct dt_manifest_tensor
        *tensor;             /* in order of addition, without slices */
    int *named_by;           /* [count] the first rank that named it */
    size_t buckets, *bucket; /* hash table of names: index + 1 */
    size_t slices, slice_room;
    struct dt_build_slice *slice;
    size_t coords, coord_room;
    int64_t *coord;
    size_t sums, sum_room;
    uint64_t *sum;
};

/* Add a file. Errors: INVALID_ARG if its name has forbidden characters or its
 * header is longer than the file, NO_MEMORY. */
dt_result_t dt_build_file(struct dt_build *build,
                          const struct dt_manifest_file *file,
                          struct dt_error *err);

/* Add a tensor that the rank names; *index is what dt_build_slice expects. If
 * another rank has named it, both must agree, but for the bytes of a blob.
 * Errors: INVALID_ARG, NO_MEMORY. */
dt_result_t dt_build_tensor(struct dt_build *build,
                            const struct dt_tensor *tensor,
                            enum dt_manifest_kind kind, bool replicated,
                            int rank, size_t *index, struct dt_error *err);

/* Add a slice of that tensor in one of the files. If slice->at is NULL, it is
 * the whole tensor. Errors: INVALID_ARG if it is not inside its tensor and its
 * file, NO_MEMORY. */
dt_result_t dt_build_slice(struct dt_build *build, size_t index,
                           const struct dt_manifest_slice *slice,
                           struct dt_error *err);

/* Set the files and tensors of manifest, after a check that the slices of
 * world_size ranks are complete. world_size 0: it is one rank's part, which is
 * not checked. Errors: INVALID_ARG with the reason, NO_MEMORY. */
dt_result_t dt_build_finish(const struct dt_build *build, int world_size,
                            struct dt_manifest *manifest, struct dt_error *err);

void dt_build_clear(struct dt_build *build);

#endif
