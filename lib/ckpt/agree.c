/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* agree.c - who writes what several ranks have. */
#include <stdlib.h>

#include "ckpt/checksum.h"
#include "ckpt/save.h"

/* Replicated tensors are spread over the ranks: each goes to the rank at which
 * its middle falls when all of them, laid end to end, are cut in equal parts.
 * So a rank writes at most the average and one tensor more. *before is the
 * bytes of the replicated tensors up to this one. */
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

static bool is_cut(const struct dt_ckpt_tensor *t)
{
    return t->kind == DT_MANIFEST_GLOBAL && !t->replicated;
}

/* All but the cut ones, for which communication is needed. */
static void choose_alone(struct dt_ckpt *ckpt)
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

/* ---- cut tensors ---- */

static size_t count_cut(const struct dt_ckpt *ckpt)
{
    size_t n = 0;
    for (size_t i = 0; i < ckpt->count; i++)
        n += is_cut(&ckpt->tensor[i]);
    return n;
}

/* A number for this rank's part, the same for the same part; 0 for none. */
static uint64_t part_number(const struct dt_ckpt_tensor *t)
{
    uint64_t sum[2] = {dt_checksum(t->at, sizeof(t->at)),
                       dt_checksum(t->extent, sizeof(t->extent))};
    uint64_t number = dt_checksum(sum, sizeof(sum));
    return t->bytes == 0 ? 0 : number ? number : 1;
}

/* The part is the lowest rank's that has it; nothing, of a tensor that has no
 * elements, rank 0's. */
static void choose_cut(struct dt_ckpt *ckpt, const uint64_t *all, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < ckpt->count; i++) {
        struct dt_ckpt_tensor *t = &ckpt->tensor[i];
        if (!is_cut(t))
            continue;
        uint64_t mine = all[(size_t)ckpt->rank * n + k];
        t->writes = mine ? true : t->type.bytes == 0 && ckpt->rank == 0;
        for (int r = 0; r < ckpt->rank && mine; r++)
            if (all[(size_t)r * n + k] == mine)
                t->writes = false;
        k++;
    }
}

static dt_result_t exchange_cut(struct dt_ckpt *ckpt, struct dt_error *err)
{
    size_t n = count_cut(ckpt), k = 0;
    if (n == 0)
        return DT_SUCCESS;
    uint64_t *all = calloc((size_t)ckpt->size * n, sizeof(*all));
    uint64_t *mine = calloc(n, sizeof(*mine));
    struct dt_vote vote = {0};
    int who;
    if (!all || !mine)
        vote.code = dt_error_set(&vote.err, DT_ERR_NO_MEMORY, "out of memory");
    dt_result_t rc = dt_vote_gather(ckpt->comm, &vote, ckpt->votes, err);
    if (rc == DT_SUCCESS)
        rc = dt_vote_result(ckpt->votes, ckpt->size, &who, err);
    if (rc != DT_SUCCESS || !all || !mine)
        goto free_lists;
    for (size_t i = 0; i < ckpt->count; i++)
        if (is_cut(&ckpt->tensor[i]))
            mine[k++] = part_number(&ckpt->tensor[i]);
    rc = dt_vote_outcome(
        dt_allgather(mine, all, n, DT_DTYPE_I64, ckpt->comm, DT_STREAM_NONE),
        err);
    if (rc == DT_SUCCESS)
        choose_cut(ckpt, all, n);
free_lists:
    free(mine);
    free(all);
    return rc;
}

/* ---- all of it ---- */

dt_result_t dt_save_agree(struct dt_ckpt *ckpt, int64_t step,
                          struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_vote mine = {.step = step, .model = dt_ckpt_fingerprint(ckpt)};
    int who;
    if (saver->agreed && saver->model == mine.model)
        return DT_SUCCESS;
    /* as large as the vote with which a rank that sees no change begins */
    dt_result_t rc = dt_vote_gather(ckpt->comm, &mine, ckpt->votes, err);
    if (rc == DT_SUCCESS)
        rc = dt_vote_result(ckpt->votes, ckpt->size, &who, err);
    if (rc != DT_SUCCESS)
        return rc;
    choose_alone(ckpt);
    rc = exchange_cut(ckpt, err);
    saver->agreed = rc == DT_SUCCESS;
    saver->model = mine.model;
    return rc;
}
