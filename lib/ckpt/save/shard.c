/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shard.c - what one rank writes, laid out as a safetensors file. */
#include "ckpt/save/shard.h"

#include <stdlib.h>
#include <string.h>

void dt_shard_clear(struct dt_shard *shard)
{
    free(shard->slice);
    free(shard->header);
    free(shard->sums);
    *shard = (struct dt_shard){0};
}

/* Lay out the file of the slices. */
static dt_result_t lay_out(struct dt_shard *shard, struct dt_error *err)
{
    dt_result_t rc = DT_ERR_NO_MEMORY;
    const struct dt_tensor **tensor = calloc(shard->count + 1, sizeof(*tensor));
    size_t *offset = calloc(shard->count + 1, sizeof(*offset));
    if (!tensor || !offset) {
        dt_no_memory(err);
        goto free_lists;
    }
    for (size_t i = 0; i < shard->count; i++)
        tensor[i] = &shard->slice[i].piece;
    rc = dt_safetensors_layout(shard->count, tensor, offset, &shard->header,
                               &shard->header_len, &shard->size, err);
    for (size_t i = 0; rc == DT_SUCCESS && i < shard->count; i++)
        shard->slice[i].offset = offset[i];
free_lists:
    free(offset);
    free(tensor);
    return rc;
}

static dt_result_t give_sums(struct dt_shard *shard, struct dt_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < shard->count; i++)
        n += dt_manifest_blocks(shard->slice[i].piece.bytes);
    shard->sums = calloc(n + 1, sizeof(*shard->sums));
    if (!shard->sums)
        return dt_no_memory(err);
    n = 0;
    for (size_t i = 0; i < shard->count; i++) {
        shard->slice[i].sum = shard->sums + n;
        n += dt_manifest_blocks(shard->slice[i].piece.bytes);
    }
    return DT_SUCCESS;
}

/* This rank's slice as a tensor. */
static struct dt_tensor piece_of(const struct dt_ckpt_tensor *t)
{
    struct dt_tensor piece = t->type;
    piece.bytes = t->bytes;
    if (t->kind == DT_MANIFEST_BLOB)
        piece.shape[0] = (int64_t)t->bytes;
    else
        memcpy(piece.shape, t->extent, sizeof(piece.shape));
    return piece;
}

dt_result_t dt_shard_make(struct dt_shard *shard, const struct dt_ckpt *ckpt,
                          struct dt_error *err)
{
    struct dt_shard new = {0};
    new.slice = calloc(ckpt->count + 1, sizeof(*new.slice));
    if (!new.slice)
        return dt_no_memory(err);
    for (size_t i = 0; i < ckpt->count; i++)
        if (ckpt->tensor[i].writes)
            new.slice[new.count++] = (struct dt_shard_slice){
                .named = i,
                .what = ckpt->tensor[i],
                .piece = piece_of(&ckpt->tensor[i]),
                .data = ckpt->tensor[i].data,
            };
    dt_result_t rc = lay_out(&new, err);
    if (rc == DT_SUCCESS)
        rc = give_sums(&new, err);
    if (rc == DT_SUCCESS)
        *shard = new;
    else
        dt_shard_clear(&new);
    return rc;
}

dt_result_t dt_shard_rest(struct dt_shard *shard, const struct dt_shard *whole,
                          const bool *skip, struct dt_error *err)
{
    struct dt_shard new = {0};
    new.slice = calloc(whole->count + 1, sizeof(*new.slice));
    if (!new.slice)
        return dt_no_memory(err);
    for (size_t i = 0; i < whole->count; i++)
        if (!skip[i])
            new.slice[new.count++] = whole->slice[i];
    dt_result_t rc = lay_out(&new, err);
    if (rc == DT_SUCCESS)
        *shard = new;
    else
        dt_shard_clear(&new);
    return rc;
}

void dt_shard_sum(struct dt_shard *shard)
{
    for (size_t i = 0; i < shard->count; i++) {
        const struct dt_shard_slice *slice = &shard->slice[i];
        size_t left = slice->piece.bytes;
        for (size_t b = 0; left > 0; b++) {
            size_t n = left < DT_MANIFEST_BLOCK ? left : DT_MANIFEST_BLOCK;
            slice->sum[b] = dt_checksum(slice->data + b * DT_MANIFEST_BLOCK, n);
            left -= n;
        }
    }
}
