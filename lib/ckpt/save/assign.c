/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* assign.c - which rank writes what several ranks have. */
#include "ckpt/save/assign.h"

#include <stdlib.h>

#include "ckpt/save/saver.h"
#include "ckpt/tensors.h"

/* Replicated tensors are spread over the ranks. All of them, laid end to end,
 * are cut into equal parts, one per rank; a tensor goes to the rank in whose
 * part its middle falls. So a rank writes at most the average and one tensor
 * more. *before is the bytes of the replicated tensors before this one. */
static int owner(const struct dt_ckpt *ckpt, size_t bytes, size_t *before,
                 size_t total)
{
    unsigned __int128 middle = (unsigned __int128)*before + bytes / 2;
    *before += bytes;
    return middle < total ? (int)(middle * (size_t)ckpt->size / total) : 0;
}

static bool is_spread(const struct dt_ckpt_tensor *t)
{
    return t->kind == DT_MANIFEST_GLOBAL && t->replicated;
}

static bool is_sliced(const struct dt_ckpt_tensor *t)
{
    return t->kind == DT_MANIFEST_GLOBAL && !t->replicated;
}

/* Assign everything but the tensors of which ranks have slices, which need
 * communication. */
static void assign_local(struct dt_ckpt *ckpt)
{
    size_t total = 0, before = 0;
    for (size_t i = 0; i < ckpt->count; i++)
        if (is_spread(&ckpt->tensor[i]))
            total += ckpt->tensor[i].bytes;
    for (size_t i = 0; i < ckpt->count; i++) {
        struct dt_ckpt_tensor *t = &ckpt->tensor[i];
        if (is_spread(t))
            t->writes = owner(ckpt, t->bytes, &before, total) == ckpt->rank;
        else if (t->kind == DT_MANIFEST_BLOB)
            t->writes = t->data && (!t->replicated || ckpt->rank == 0);
        else
            t->writes = true;
    }
}

/* ---- slices ---- */

static size_t count_sliced(const struct dt_ckpt *ckpt)
{
    size_t n = 0;
    for (size_t i = 0; i < ckpt->count; i++)
        n += is_sliced(&ckpt->tensor[i]);
    return n;
}

/* A number that is the same for the same slice; 0: no elements. */
static uint64_t slice_number(const struct dt_ckpt_tensor *t)
{
    uint64_t sum[2] = {dt_checksum(t->at, sizeof(t->at)),
                       dt_checksum(t->extent, sizeof(t->extent))};
    uint64_t number = dt_checksum(sum, sizeof(sum));
    return t->bytes == 0 ? 0 : number ? number : 1;
}

/* The lowest rank that has a slice writes it; of a tensor without elements that
 * is rank 0. */
static void assign_sliced(struct dt_ckpt *ckpt, const uint64_t *all, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < ckpt->count; i++) {
        struct dt_ckpt_tensor *t = &ckpt->tensor[i];
        if (!is_sliced(t))
            continue;
        uint64_t mine = all[(size_t)ckpt->rank * n + k];
        t->writes = mine ? true : t->type.bytes == 0 && ckpt->rank == 0;
        for (int r = 0; r < ckpt->rank && mine; r++)
            if (all[(size_t)r * n + k] == mine)
                t->writes = false;
        k++;
    }
}

static dt_result_t exchange_slices(struct dt_ckpt *ckpt, struct dt_error *err)
{
    size_t n = count_sliced(ckpt), k = 0;
    if (n == 0)
        return DT_SUCCESS;
    uint64_t *all = calloc((size_t)ckpt->size * n, sizeof(*all));
    uint64_t *mine = calloc(n, sizeof(*mine));
    struct dt_vote vote = {0};
    if (!all || !mine)
        vote.code = dt_no_memory(&vote.err);
    dt_result_t rc =
        dt_vote_agree(ckpt->comm, &vote, ckpt->votes, ckpt->size, err);
    if (rc != DT_SUCCESS || !all || !mine)
        goto free_lists;
    for (size_t i = 0; i < ckpt->count; i++)
        if (is_sliced(&ckpt->tensor[i]))
            mine[k++] = slice_number(&ckpt->tensor[i]);
    rc = dt_vote_outcome(
        dt_allgather(mine, all, n, DT_DTYPE_I64, ckpt->comm, DT_STREAM_NONE),
        err);
    if (rc == DT_SUCCESS)
        assign_sliced(ckpt, all, n);
free_lists:
    free(mine);
    free(all);
    return rc;
}

/* ---- all of it ---- */

dt_result_t dt_assign(struct dt_ckpt *ckpt, int64_t step, struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_vote mine = {.step = step, .model = dt_tensors_fingerprint(ckpt)};
    if (saver->assigned && saver->model == mine.model)
        return DT_SUCCESS;
    /* A rank that sees no change goes on to the vote of its save: this one must
     * be as large as that, so that the two meet and show the difference. */
    dt_result_t rc =
        dt_vote_agree(ckpt->comm, &mine, ckpt->votes, ckpt->size, err);
    if (rc != DT_SUCCESS)
        return rc;
    assign_local(ckpt);
    rc = exchange_slices(ckpt, err);
    saver->assigned = rc == DT_SUCCESS;
    saver->model = mine.model;
    return rc;
}
