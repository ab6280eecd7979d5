/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* quantized.c - a bucket whose gradients go in 8 bits per element.
 *
 * Residuals are written only when the result is used, as a bucket with a flag
 * is sent a second time, by negotiation. */
#include "grad/plan/quantized.h"

#include <stdlib.h>
#include <string.h>

#include "grad/compress/int8.h"
#include "grad/plan/gradient.h"

#define FLAG sizeof(uint32_t)

struct dt_quantized {
    int n, me;
    /* of each rank, in bytes: the pieces that this rank sends, and the sums
     * that it receives; pieces that it receives, all of one size */
    size_t *counts, *displs, *mine, *mine_displs;
    size_t *at;          /* of each rank: where the next record is */
    unsigned char *sent; /* pieces to all ranks */
    unsigned char
        *received;       /* pieces from all ranks, then sums of all blocks */
    unsigned char *sums; /* of this rank's blocks */
    float *errors;       /* of these */
    size_t owned;        /* blocks that this rank sums */
    size_t received_bytes;
    bool raised;
};

static size_t sent_bytes(const struct dt_quantized *q)
{
    return q->displs[q->n - 1] + q->counts[q->n - 1];
}

/* ---- making and freeing ---- */

static void lay_out(struct dt_quantized *q, const struct dt_bucket *bucket)
{
    for (int r = 0; r < q->n; r++)
        q->counts[r] = FLAG;
    for (int i = 0; i < bucket->n; i++) {
        const struct dt_gradient *g = bucket->gradients[i];
        for (size_t b = 0; b < dt_int8_blocks(g->count); b++)
            q->counts[dt_gradient_owner(g, b)] += DT_INT8_RECORD;
    }
    for (int r = 0; r < q->n; r++) {
        q->displs[r] = r ? q->displs[r - 1] + q->counts[r - 1] : 0;
        q->mine[r] = q->counts[q->me];
        q->mine_displs[r] = (size_t)r * q->mine[r];
    }
    q->owned = (q->counts[q->me] - FLAG) / DT_INT8_RECORD;
    size_t pieces = (size_t)q->n * q->counts[q->me];
    q->received_bytes = pieces > sent_bytes(q) ? pieces : sent_bytes(q);
}

dt_result_t dt_quantized_make(struct dt_bucket *bucket, struct dt_error *err)
{
    const struct dt_grad_set *set = bucket->gradients[0]->plan->set;
    struct dt_quantized *q = calloc(1, sizeof(*q));
    size_t n = (size_t)set->n;
    if (!q)
        return dt_no_memory(err);
    bucket->quantized = q;
    q->n = set->n;
    q->me = set->me;
    q->counts = calloc(5 * n, sizeof(*q->counts));
    if (!q->counts)
        return dt_no_memory(err);
    q->displs = q->counts + n;
    q->mine = q->counts + 2 * n;
    q->mine_displs = q->counts + 3 * n;
    q->at = q->counts + 4 * n;
    lay_out(q, bucket);
    q->sent = malloc(sent_bytes(q));
    q->received = malloc(q->received_bytes);
    q->sums = malloc(q->counts[q->me]);
    q->errors = malloc(q->owned * DT_INT8_BLOCK * sizeof(float) + 1);
    if (!q->sent || !q->received || !q->sums || !q->errors)
        return dt_no_memory(err);
    return DT_SUCCESS;
}

void dt_quantized_free(struct dt_quantized *q)
{
    if (!q)
        return;
    free(q->counts);
    free(q->sent);
    free(q->received);
    free(q->sums);
    free(q->errors);
    free(q);
}

size_t dt_quantized_held(const struct dt_quantized *q)
{
    return sent_bytes(q) + q->received_bytes + q->counts[q->me] +
           q->owned * DT_INT8_BLOCK * sizeof(float);
}

size_t dt_quantized_sent(const struct dt_quantized *q)
{
    return sent_bytes(q) + q->counts[q->me];
}

/* ---- records ---- */

static void rewind_records(struct dt_quantized *q)
{
    for (int r = 0; r < q->n; r++)
        q->at[r] = q->displs[r] + FLAG;
}

/* Where the next record of this owner is, among all pieces. */
static size_t next_record(struct dt_quantized *q, int owner)
{
    size_t at = q->at[owner];
    q->at[owner] += DT_INT8_RECORD;
    return at;
}

void dt_quantized_pack(struct dt_bucket *bucket, bool follow)
{
    struct dt_quantized *q = bucket->quantized;
    const uint32_t flag = follow ? 0 : 1;
    if (!follow)
        memset(q->sent, 0, sent_bytes(q));
    for (int r = 0; r < q->n; r++)
        memcpy(q->sent + q->displs[r], &flag, FLAG);
    rewind_records(q);
    for (int i = 0; follow && i < bucket->n; i++) {
        const struct dt_gradient *g = bucket->gradients[i];
        for (size_t b = 0; b < dt_int8_blocks(g->count); b++) {
            struct dt_int8_block block = dt_gradient_block(g, b);
            dt_int8_encode(q->sent + next_record(q, dt_gradient_owner(g, b)),
                           &block);
        }
    }
}

static void sum(struct dt_quantized *q)
{
    size_t piece = q->counts[q->me];
    q->raised = false;
    for (int r = 0; r < q->n; r++) {
        uint32_t flag;
        memcpy(&flag, q->received + (size_t)r * piece, FLAG);
        q->raised = q->raised || flag != 0;
    }
    memset(q->sums, 0, FLAG);
    for (size_t b = 0; b < q->owned; b++) {
        size_t at = FLAG + b * DT_INT8_RECORD;
        dt_int8_reduce(q->sums + at, q->errors + b * DT_INT8_BLOCK,
                       q->received + at, piece, q->n);
    }
}

void dt_quantized_unpack(struct dt_bucket *bucket)
{
    struct dt_quantized *q = bucket->quantized;
    size_t kept = 0;
    rewind_records(q);
    for (int i = 0; i < bucket->n; i++) {
        struct dt_gradient *g = bucket->gradients[i];
        for (size_t b = 0; b < dt_int8_blocks(g->count); b++) {
            int owner = dt_gradient_owner(g, b);
            size_t at = next_record(q, owner);
            const float *error = NULL;
            if (owner == q->me)
                error = q->errors + kept++ * DT_INT8_BLOCK;
            dt_gradient_end_block(g, b, q->sent + at, q->received + at, error);
        }
    }
}

/* ---- collectives ---- */

dt_result_t dt_quantized_scatter(struct dt_bucket *bucket, dt_comm_t comm)
{
    struct dt_quantized *q = bucket->quantized;
    return dt_ialltoallv(q->sent, q->counts, q->displs, q->received, q->mine,
                         q->mine_displs, DT_DTYPE_U8, comm, DT_STREAM_NONE,
                         &bucket->request);
}

dt_result_t dt_quantized_gather(struct dt_bucket *bucket, dt_comm_t comm)
{
    struct dt_quantized *q = bucket->quantized;
    sum(q);
    return dt_iallgatherv(q->sums, q->received, q->counts, q->displs,
                          DT_DTYPE_U8, comm, DT_STREAM_NONE, &bucket->request);
}

bool dt_quantized_is_raised(const struct dt_quantized *q)
{
    return q->raised;
}
