/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shard.h - what one rank writes, laid out as a safetensors file. */
#ifndef DT_CKPT_SHARD_H
#define DT_CKPT_SHARD_H

#include "ckpt/ckpt.h"

struct dt_shard_slice {
    size_t named;               /* its index in ckpt->tensor */
    struct dt_ckpt_tensor what; /* as it was there: that may change meanwhile */
    struct dt_tensor piece;     /* this rank's part, as a tensor of its own */
    size_t offset;              /* of its data, from the start of the file */
    const char *data;           /* where its bytes are; borrowed */
    uint64_t *sum;              /* of its blocks, once dt_shard_sum has run */
};

struct dt_shard {
    size_t count;
    struct dt_shard_slice *slice;
    char *header; /* what the file begins with */
    size_t header_len, size;
    uint64_t *sums; /* the slices' */
};

/* Everything that this rank writes (ckpt->tensor[].writes), its data where the
 * program has it. Errors: NO_MEMORY. */
dt_result_t dt_shard_make(struct dt_shard *shard, const struct dt_ckpt *ckpt,
                          struct dt_error *err);

/* Those slices i of whole for which !skip[i], with their sums; whole must
 * outlive it. Errors: NO_MEMORY. */
dt_result_t dt_shard_rest(struct dt_shard *shard, const struct dt_shard *whole,
                          const bool *skip, struct dt_error *err);

/* Checksums of all blocks. */
void dt_shard_sum(struct dt_shard *shard);

/* Give back all of it. */
void dt_shard_clear(struct dt_shard *shard);

#endif
