/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* reshard.c - dt-ckpt reshard: the same contents, cut into equal parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/format/format.h"
#include "files/compose.h"
#include "text/options.h"

struct reshard {
    struct checkpoint c;
    int ranks;
    struct rank_items *items; /* [ranks] */
    size_t next;              /* whose turn it is to write what is not cut */
};

/* The part of rank of n rows: from *at on *rows. */
static void cut(int64_t n, int rank, int ranks, int64_t *at, int64_t *rows)
{
    int64_t each = n / ranks, more = n % ranks;
    *at = each * rank + (rank < more ? rank : more);
    *rows = each + (rank < more);
}

static struct item *new_item(struct reshard *r, int rank,
                             const struct dt_manifest_tensor *t)
{
    struct rank_items *to = &r->items[rank];
    struct item *item = &to->item[to->n++];
    *item = (struct item){.tensor = t->tensor,
                          .origin = origin_of(&r->c, t, rank),
                          .whole = &t->tensor,
                          .kind = t->kind,
                          .replicated = t->replicated};
    return item;
}

/* Each rank's rows of a global tensor. */
static dt_result_t cut_global(struct reshard *r,
                              const struct dt_manifest_tensor *t,
                              struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (int rank = 0; rank < r->ranks && rc == DT_SUCCESS; rank++) {
        int64_t shape[DT_TENSOR_DIMS_MAX], at, rows;
        cut(t->tensor.shape[0], rank, r->ranks, &at, &rows);
        if (rows == 0)
            continue;
        memcpy(shape, t->tensor.shape, sizeof(shape));
        shape[0] = rows;
        struct item *item = new_item(r, rank, t);
        item->replicated = false; /* which loads as such all the same */
        item->origin.at = item->at[0] = at;
        item->origin.n = rows;
        rc = dt_tensor_init(&item->tensor, t->tensor.name, t->tensor.dtype,
                            t->tensor.ndim, shape, err);
    }
    return rc;
}

/* What each rank has for itself. */
static dt_result_t keep_own(struct reshard *r,
                            const struct dt_manifest_tensor *t,
                            struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    if (r->ranks != r->c.manifest.world_size)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "%s: %s %s is each rank's own: it cannot be cut "
                            "for any number of ranks but %d",
                            r->c.path,
                            t->kind == DT_MANIFEST_BLOB ? "blob" : "tensor",
                            t->tensor.name, r->c.manifest.world_size);
    for (int rank = 0; rank < r->ranks && rc == DT_SUCCESS; rank++) {
        const struct dt_manifest_slice *own = own_slice(t, rank);
        if (!own)
            continue;
        struct item *item = new_item(r, rank, t);
        rc = dt_tensor_init(&item->tensor, t->tensor.name, t->tensor.dtype,
                            t->tensor.ndim, own->extent, err);
    }
    return rc;
}

static dt_result_t plan(struct reshard *r, struct dt_error *err)
{
    const struct dt_manifest *m = &r->c.manifest;
    dt_result_t rc = DT_SUCCESS;
    r->items = calloc((size_t)r->ranks, sizeof(*r->items));
    if (!r->items)
        return dt_no_memory(err);
    for (int rank = 0; rank < r->ranks; rank++) {
        r->items[rank].item = calloc(m->count + 1, sizeof(struct item));
        if (!r->items[rank].item)
            return dt_no_memory(err);
    }
    for (size_t i = 0; i < m->count && rc == DT_SUCCESS; i++) {
        const struct dt_manifest_tensor *t = &m->tensor[i];
        bool global = t->kind == DT_MANIFEST_GLOBAL;
        if (global && t->tensor.ndim > 0 && t->tensor.bytes > 0)
            rc = cut_global(r, t, err);
        else if (global || t->replicated) /* one rank writes it */
            new_item(r, (int)(r->next++ % (size_t)r->ranks), t);
        else
            rc = keep_own(r, t, err);
    }
    return rc;
}

dt_result_t command_reshard(const struct options *options, int *status,
                            struct dt_error *err)
{
    struct reshard r = {.ranks = (int)options->ranks};
    struct dt_manifest head;
    (void)status;
    dt_result_t rc = checkpoint_open(&r.c, options->arg[0], err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = plan(&r, err);
    if (rc == DT_SUCCESS) {
        head = r.c.manifest;
        head.world_size = r.ranks;
        head.num_nodes = 1;
        head.nfiles = head.count = 0;
        head.file = NULL;
        head.tensor = NULL;
        head.slices = NULL;
        head.coords = NULL;
        head.sums = NULL;
        strcpy(head.redundancy, "none");
        rc = compose(options->arg[1], &head, r.items, options->force, err);
    }
    for (int rank = 0; rank < r.ranks && r.items; rank++)
        items_free(r.items[rank].item, r.items[rank].n);
    free(r.items);
    checkpoint_close(&r.c);
    return rc;
}
