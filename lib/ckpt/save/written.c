/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* written.c - what this rank wrote into a tier at its last save. */
#include "ckpt/save/written.h"

#include <stdlib.h>
#include <string.h>

void dt_written_clear(struct dt_written *written)
{
    free(written->file);
    free(written->slice);
    free(written->sums);
    *written = (struct dt_written){0};
}

dt_result_t dt_written_make(struct dt_written *written,
                            const struct dt_shard *shard, int64_t step,
                            struct dt_error *err)
{
    struct dt_written new = {.step = step, .count = shard->count};
    size_t blocks = 0;
    for (size_t i = 0; i < shard->count; i++)
        blocks += dt_manifest_blocks(shard->slice[i].piece.bytes);
    new.slice = calloc(shard->count + 1, sizeof(*new.slice));
    new.sums = calloc(blocks + 1, sizeof(*new.sums));
    if (!new.slice || !new.sums) {
        dt_written_clear(&new);
        return dt_no_memory(err);
    }
    blocks = 0;
    for (size_t i = 0; i < shard->count; i++) {
        const struct dt_shard_slice *slice = &shard->slice[i];
        size_t n = dt_manifest_blocks(slice->piece.bytes);
        new.slice[i] = (struct dt_written_slice){.named = slice->named,
                                                 .bytes = slice->piece.bytes,
                                                 .sum = new.sums + blocks};
        if (n > 0)
            memcpy(new.slice[i].sum, slice->sum, n * sizeof(*slice->sum));
        blocks += n;
    }
    *written = new;
    return DT_SUCCESS;
}

dt_result_t dt_written_add(struct dt_written *written,
                           const struct dt_manifest_file *file, int *index,
                           struct dt_error *err)
{
    void *more =
        realloc(written->file, (written->nfiles + 1) * sizeof(*written->file));
    if (!more)
        return dt_no_memory(err);
    written->file = more;
    written->file[written->nfiles] = *file;
    *index = (int)written->nfiles++;
    return DT_SUCCESS;
}

/* Slices are in the order in which they were named, in both. */
static void match(const struct dt_written *before, const struct dt_shard *shard,
                  int *same)
{
    size_t k = 0;
    for (size_t i = 0; i < shard->count; i++) {
        const struct dt_shard_slice *now = &shard->slice[i];
        while (k < before->count && before->slice[k].named < now->named)
            k++;
        same[i] = -1;
        if (k == before->count || before->slice[k].named != now->named)
            continue;
        const struct dt_written_slice *then = &before->slice[k];
        size_t n = dt_manifest_blocks(now->piece.bytes);
        if (n > 0 && then->bytes == now->piece.bytes &&
            memcmp(then->sum, now->sum, n * sizeof(*now->sum)) == 0)
            same[i] = (int)k;
    }
}

bool dt_written_same(const struct dt_written *before,
                     const struct dt_shard *shard, int *same)
{
    bool any = false, worth = true;
    match(before, shard, same);
    for (size_t f = 0; f < before->nfiles; f++) {
        size_t used = 0;
        for (size_t i = 0; i < shard->count; i++)
            if (same[i] >= 0 && before->slice[same[i]].file == (int)f)
                used += shard->slice[i].piece.bytes;
        any = any || used > 0;
        const struct dt_manifest_file *file = &before->file[f];
        worth = worth && (used == 0 || used >= (file->size - file->header) / 2);
    }
    for (size_t i = 0; i < shard->count && !worth; i++)
        same[i] = -1;
    return any && worth;
}
