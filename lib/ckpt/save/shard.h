/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shard.h - what one rank writes, laid out as a safetensors file. */
#ifndef DT_CKPT_SAVE_SHARD_H
#define DT_CKPT_SAVE_SHARD_H

#include "ckpt/handle.h"

struct dt_shard_slice {
    size_t named;               /* its index in ckpt->tensor */
    struct dt_ckpt_tensor what; /* a copy of that entry, which may change */
    struct dt_tensor piece;     /* this rank's slice as a tensor */
    size_t offset;              /* of its data, from the start of the file */
    const char *data;           /* its bytes; borrowed */
    uint64_t *sum; /* checksums of its blocks, set by dt_shard_sum */
};

struct dt_shard {
    size_t count;
    struct dt_shard_slice *slice;
    char *header; /* of the file */
    size_t header_len, size;
    uint64_t *sums; /* what the slices' sum point to */
};

/* Lay out everything that this rank writes (ckpt->tensor[].writes); data is the
 * program's memory. Error: NO_MEMORY. */
dt_result_t dt_shard_make(struct dt_shard *shard, const struct dt_ckpt *ckpt,
                          struct dt_error *err);

/* Lay out the slices i of whole with !skip[i], with their checksums; whole must
 * outlive the new shard. Error: NO_MEMORY. */
dt_result_t dt_shard_rest(struct dt_shard *shard, const struct dt_shard *whole,
                          const bool *skip, struct dt_error *err);

/* Compute the checksums of all blocks. */
void dt_shard_sum(struct dt_shard *shard);

/* Free all of it. */
void dt_shard_clear(struct dt_shard *shard);

#endif
