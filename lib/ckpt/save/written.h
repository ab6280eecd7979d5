/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* written.h - what this rank wrote into a tier at its last save: slices that
 * have not changed since are linked into the next checkpoint instead of
 * written. */
#ifndef DT_CKPT_SAVE_WRITTEN_H
#define DT_CKPT_SAVE_WRITTEN_H

#include "ckpt/save/shard.h"

struct dt_written_slice {
    size_t named;         /* as in dt_shard_slice */
    size_t bytes, offset; /* of its data; from the start of its file */
    int file;
    uint64_t *sum;
};

struct dt_written {
    int64_t step;
    size_t nfiles, count;
    struct dt_manifest_file *file;
    struct dt_written_slice *slice;
    uint64_t *sums; /* what the slices' sum point to */
};

/* Set the slices of shard and their checksums; files are still to be added, and
 * the file and offset of each slice to be set. The only error is NO_MEMORY. */
dt_result_t dt_written_make(struct dt_written *written,
                            const struct dt_shard *shard, int64_t step,
                            struct dt_error *err);

/* Add a file, whose index is *index. The only error is NO_MEMORY. */
dt_result_t dt_written_add(struct dt_written *written,
                           const struct dt_manifest_file *file, int *index,
                           struct dt_error *err);

/* Find the slices of shard that are unchanged in a file of before: same[i] is
 * the slice's index there, or -1. All are -1 unless at least half of each file
 * that would be linked is still in use. True if there is one. */
bool dt_written_same(const struct dt_written *before,
                     const struct dt_shard *shard, int *same);

void dt_written_clear(struct dt_written *written);

#endif
