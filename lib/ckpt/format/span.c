/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* span.c - the files of one node, laid end to end in the order of their names.
 */
#include "ckpt/format/span.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/format/failure.h"

#define BYTES_MAX ((size_t)1 << 53) /* so that no sum of them overflows */

static int by_name(const void *a, const void *b, void *manifest)
{
    const struct dt_manifest_file *file =
        ((const struct dt_manifest *)manifest)->file;
    const struct dt_span_part *x = a, *y = b;
    return strcmp(file[x->file].name, file[y->file].name);
}

dt_result_t dt_span_init(struct dt_span *span,
                         const struct dt_manifest *manifest, int node,
                         struct dt_error *err)
{
    struct dt_span all = {0};
    all.part = calloc(manifest->nfiles + 1, sizeof(*all.part));
    if (!all.part)
        return dt_no_memory(err);
    for (size_t f = 0; f < manifest->nfiles; f++)
        if (manifest->file[f].node == node)
            all.part[all.count++].file = (int)f;
    qsort_r(all.part, all.count, sizeof(*all.part), by_name, (void *)manifest);
    for (size_t i = 0; i < all.count; i++) {
        all.part[i].size = manifest->file[all.part[i].file].size;
        all.part[i].start = all.bytes;
        all.bytes += all.part[i].size;
        if (all.part[i].size > BYTES_MAX || all.bytes > BYTES_MAX) {
            free(all.part);
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "the files of node %d are larger than any disk",
                                node);
        }
    }
    *span = all;
    return DT_SUCCESS;
}

void dt_span_clear(struct dt_span *span)
{
    free(span->part);
    *span = (struct dt_span){0};
}

bool dt_span_next(const struct dt_span *span, size_t *at, size_t end,
                  struct dt_span_run *run)
{
    for (size_t i = 0; i < span->count && *at < end; i++) {
        const struct dt_span_part *part = &span->part[i];
        if (*at - part->start >= part->size)
            continue; /* *at is after it */
        size_t stop = part->start + part->size;
        stop = stop < end ? stop : end;
        run->file = part->file;
        run->offset = *at - part->start;
        run->len = stop - *at;
        *at = stop;
        return true;
    }
    return false;
}
