/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* compose.c - a new checkpoint from items. */
#include "files/compose.h"

#include <stdio.h>
#include <stdlib.h>

#include "ckpt/format/format.h"
#include "text/terminal.h"

/* What the ranks wrote, as text. */
struct parts {
    char **text;
    size_t *len;
};

static dt_result_t add_item(struct dt_part *part, int index, int rank,
                            const struct item *item, struct dt_error *err)
{
    struct dt_manifest_slice slice = {.file = index,
                                      .rank = rank,
                                      .offset = item->offset,
                                      .bytes = item->tensor.bytes,
                                      .at = item->at,
                                      .extent = item->tensor.shape,
                                      .sum = item->sum};
    return dt_part_add_slice(part, item->whole, item->kind, item->replicated,
                             &slice, err);
}

static dt_result_t add_all(struct dt_part *part, int rank,
                           const struct rank_items *items,
                           const struct dt_manifest_file *file,
                           struct dt_error *err)
{
    int index = 0;
    dt_result_t rc = DT_SUCCESS;
    if (items->n > 0)
        rc = dt_part_add_file(part, file, &index, err);
    for (size_t i = 0; i < items->n && rc == DT_SUCCESS; i++)
        rc = add_item(part, index, rank, &items->item[i], err);
    return rc;
}

static dt_result_t write_rank(const struct new_checkpoint *fresh, int rank,
                              int ranks, struct rank_items *items, char **text,
                              size_t *len, struct dt_error *err)
{
    struct dt_manifest_file file = {.rank = rank};
    int fd = -1;
    struct dt_part *part = dt_part_create(rank, 0);
    if (!part)
        return dt_no_memory(err);
    snprintf(file.name, sizeof(file.name), "rank-%05d-of-%05d.safetensors",
             rank, ranks);
    dt_result_t rc = DT_SUCCESS;
    if (items->n > 0) {
        rc = new_checkpoint_file(fresh, file.name, &fd, err);
        if (rc == DT_SUCCESS) {
            rc = shard_file_write(fd, file.name, items->item, items->n, &file,
                                  err);
            rc = new_checkpoint_close_file(fd, file.name, rc, err);
        }
    }
    if (rc == DT_SUCCESS)
        rc = add_all(part, rank, items, &file, err);
    if (rc == DT_SUCCESS)
        rc = dt_part_print(part, text, len, err);
    dt_part_destroy(part);
    return rc;
}

static dt_result_t write_ranks(const struct new_checkpoint *fresh, int ranks,
                               struct rank_items *items, struct parts *parts,
                               struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    size_t total = 0;
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < items[r].n; i++)
            total += items[r].item[i].tensor.bytes;
    bar_start("write", total);
    for (int r = 0; r < ranks && rc == DT_SUCCESS; r++)
        rc = write_rank(fresh, r, ranks, &items[r], &parts->text[r],
                        &parts->len[r], err);
    progress_end();
    return rc;
}

static dt_result_t manifest_text(const struct dt_manifest *head,
                                 const struct parts *parts, double seconds,
                                 char **text, size_t *len, struct dt_error *err)
{
    struct dt_manifest m = *head;
    m.version = DT_MANIFEST_VERSION;
    m.write_s = seconds;
    dt_result_t rc = dt_manifest_join(
        &m, m.world_size, (const char *const *)parts->text, parts->len, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = dt_manifest_print(&m, text, len, err);
    dt_manifest_clear(&m);
    return rc;
}

static dt_result_t write_all(struct directory *dir,
                             const struct dt_manifest *head,
                             struct rank_items *ranks, bool force,
                             struct parts *parts, struct dt_error *err)
{
    struct new_checkpoint fresh;
    char *text = NULL;
    size_t len = 0;
    double begin = now_us();
    dt_result_t rc = new_checkpoint_open(&fresh, dir, head->step, force, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = write_ranks(&fresh, head->world_size, ranks, parts, err);
    if (rc == DT_SUCCESS)
        rc = manifest_text(head, parts, (now_us() - begin) / 1e6, &text, &len,
                           err);
    rc = new_checkpoint_close(&fresh, text, len, rc, err);
    free(text);
    return rc;
}

dt_result_t compose(const char *dir, const struct dt_manifest *head,
                    struct rank_items *ranks, bool force, struct dt_error *err)
{
    struct directory place;
    size_t n = (size_t)head->world_size;
    struct parts parts = {calloc(n, sizeof(*parts.text)),
                          calloc(n, sizeof(*parts.len))};
    dt_result_t rc = parts.text && parts.len
                         ? directory_open(&place, dir, true, err)
                         : dt_no_memory(err);
    if (rc == DT_SUCCESS) {
        rc = write_all(&place, head, ranks, force, &parts, err);
        directory_close(&place);
    }
    for (size_t r = 0; r < n && parts.text; r++)
        free(parts.text[r]);
    free(parts.text);
    free(parts.len);
    return rc;
}
