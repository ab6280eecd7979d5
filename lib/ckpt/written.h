/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* written.h - what this rank wrote into a tier at its last save: what has not
 * changed since is linked into the next checkpoint, not written again. */
#ifndef DT_CKPT_WRITTEN_H
#define DT_CKPT_WRITTEN_H

#include "ckpt/shard.h"

struct dt_written_slice {
    size_t named;         /* as in dt_shard_slice */
    size_t bytes, offset; /* of its data; in its file */
    int file;
    uint64_t *sum;
};

struct dt_written {
    int64_t step;
    size_t nfiles, count;
    struct dt_manifest_file *file;
    struct dt_written_slice *slice;
    uint64_t *sums; /* the slices' */
};

/* The slices of shard and their sums; without files yet, and without the file
 * and the offset of any slice. Only NO_MEMORY. */
dt_result_t dt_written_make(struct dt_written *written,
                            const struct dt_shard *shard, int64_t step,
                            struct dt_error *err);

/* Add a file to it; *index. Only NO_MEMORY. */
dt_result_t dt_written_add(struct dt_written *written,
                           const struct dt_manifest_file *file, int *index,
                           struct dt_error *err);

/* Which slices of shard are in a file of before, unchanged: same[i] is the
 * slice's index there or -1. All are -1 unless at least half of each file that
 * would be linked is still in use. True if any is. */
bool dt_written_same(const struct dt_written *before,
                     const struct dt_shard *shard, int *same);

void dt_written_clear(struct dt_written *written);

#endif
