/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* redundancy_set.c - the nodes that protected each other, and which rank holds
 * what they saved. */
#include "ckpt/format/redundancy_set.h"

#include <stdlib.h>

#include "ckpt/format/failure.h"

dt_result_t dt_redundancy_set_init(struct dt_redundancy_set *set,
                                   const struct dt_manifest *manifest,
                                   const int *holder,
                                   const struct dt_erasure *scheme, int node,
                                   struct dt_error *err)
{
    struct dt_redundancy_set t = {.holder = holder};
    size_t longest = 0;
    if (dt_erasure_layout(scheme, manifest->num_nodes, node, &t.layout, err) !=
        DT_SUCCESS)
        return DT_ERR_CORRUPT;
    t.span = calloc((size_t)t.layout.size, sizeof(*t.span));
    t.parity_holder = calloc((size_t)t.layout.size, sizeof(*t.parity_holder));
    dt_result_t rc = t.span && t.parity_holder ? DT_SUCCESS : dt_no_memory(err);
    for (int i = 0; i < t.layout.size && rc == DT_SUCCESS; i++) {
        t.parity_holder[i] = -1;
        rc = dt_span_init(&t.span[i], manifest, t.layout.first + i, err);
        if (t.span[i].bytes > longest)
            longest = t.span[i].bytes;
    }
    if (rc != DT_SUCCESS) {
        dt_redundancy_set_clear(&t);
        return rc;
    }
    dt_parity_init(&t.parity, manifest->tag, manifest->num_nodes, -1, &t.layout,
                   longest);
    *set = t;
    return rc;
}

void dt_redundancy_set_clear(struct dt_redundancy_set *set)
{
    for (int i = 0; set->span && i < set->layout.size; i++)
        dt_span_clear(&set->span[i]);
    free(set->span);
    free(set->parity_holder);
    *set = (struct dt_redundancy_set){0};
}

/* Find one block of a stripe, from its byte `at` on: false if it is lost. *len
 * is how many bytes the caller wants, and then how many of them lie in one
 * place. */
static bool find_block(const struct dt_redundancy_set *set, int stripe,
                       size_t at, struct dt_cut_block *block, size_t *len)
{
    struct dt_span_run run;
    int parity;
    int member = dt_erasure_member(&set->layout, stripe, block->number);
    int data = dt_erasure_data_block(&set->layout, member, stripe, &parity);
    block->holder = block->file = -1;
    if (data < 0) {
        block->node = set->layout.first + member;
        block->offset = (size_t)dt_parity_at(&set->parity, parity, at);
        block->holder = set->parity_holder[member];
        return block->holder >= 0;
    }
    at += (size_t)data * set->parity.length;
    if (!dt_span_next(&set->span[member], &at, at + *len, &run))
        return true; /* zeros after the last file of the node */
    block->file = run.file;
    block->offset = run.offset;
    block->holder = set->holder[run.file];
    if (block->holder < 0)
        return false;
    *len = run.len;
    return true;
}

/* The cut of a stripe from byte `at` of its blocks on; cut->wanted and
 * cut->len, which may become less, are set. */
static bool fill_cut(const struct dt_redundancy_set *set, int stripe, size_t at,
                     struct dt_cut *cut)
{
    const struct dt_erasure_layout *layout = &set->layout;
    int used = 0;
    if (cut->len > set->parity.length - at)
        cut->len = set->parity.length - at;
    for (int i = 0; i < layout->size && used < layout->k; i++) {
        cut->use[used].number = i;
        used += i != cut->wanted &&
                find_block(set, stripe, at, &cut->use[used], &cut->len);
    }
    return used == layout->k;
}

bool dt_redundancy_set_cut(const struct dt_redundancy_set *set, int member,
                           size_t from, size_t end, size_t limit,
                           struct dt_cut *cut)
{
    size_t length = set->parity.length;
    int stripe = dt_erasure_stripe(&set->layout, member, (int)(from / length));
    cut->wanted = dt_erasure_block(&set->layout, member, stripe);
    cut->len = end - from < limit ? end - from : limit;
    return fill_cut(set, stripe, from % length, cut);
}

bool dt_redundancy_set_parity_cut(const struct dt_redundancy_set *set,
                                  int member, int parity, size_t from,
                                  size_t limit, struct dt_cut *cut)
{
    const struct dt_erasure_layout *layout = &set->layout;
    int stripe = (member - parity + layout->size) % layout->size;
    cut->wanted = layout->k + parity;
    cut->len = limit;
    return fill_cut(set, stripe, from, cut);
}

dt_result_t dt_redundancy_set_row(const struct dt_redundancy_set *set,
                                  const struct dt_cut *cut, unsigned char *row,
                                  struct dt_error *err)
{
    int have[255];
    for (int i = 0; i < set->layout.k; i++)
        have[i] = cut->use[i].number;
    return dt_erasure_row(set->layout.k, set->layout.m, have, cut->wanted, row,
                          err);
}
