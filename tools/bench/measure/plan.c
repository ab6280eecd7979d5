/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.c - the sizes, types, operations and roots to measure. */
#include <stdlib.h>

#include "measure/measure.h"
#include "measure/element.h"

enum { MOST_ROWS = 1 << 20 };

struct list {
    struct row *row;
    size_t n, room;
};

static bool append(struct list *list, const struct row *row)
{
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct row *more = realloc(list->row, room * sizeof(*more));
        if (!more || room > MOST_ROWS) {
            list->row = more ? more : list->row;
            return false;
        }
        list->row = more;
        list->room = room;
    }
    list->row[list->n++] = *row;
    return true;
}

/* The next size; 0 after the last. */
static size_t next_size(const struct options *options, size_t bytes)
{
    size_t last = options->maxbytes;
    if (options->stepfactor && bytes)
        return bytes > last / options->stepfactor ? 0
                                                  : bytes * options->stepfactor;
    size_t step = options->stepbytes ? options->stepbytes : 1;
    return bytes > last - step || step > last ? 0 : bytes + step;
}

/* All sizes of one type. Sizes are rounded down to whole elements, the same
 * number for each rank and at least one; repeated sizes are left out. */
static bool append_sizes(struct list *list, const struct options *options,
                         int ranks, struct row row)
{
    const struct operation *operation = options->operation;
    size_t parts = operation->split ? (size_t)ranks : 1;
    size_t whole = parts * dt_dtype_size(row.dtype);
    size_t before = SIZE_MAX, bytes = options->minbytes;
    if (operation->data == DATA_NONE)
        return append(list, &row);
    do {
        row.count = bytes / whole;
        if (!row.count && bytes)
            row.count = 1;
        row.bytes = row.count * whole;
        if (row.bytes != before && !append(list, &row))
            return false;
        before = row.bytes;
        bytes = next_size(options, bytes);
    } while (bytes);
    return true;
}

static bool append_roots(struct list *list, const struct options *options,
                         int ranks, struct row row)
{
    bool all = options->operation->rooted && options->root < 0;
    row.root = all ? 0 : options->operation->rooted ? options->root : -1;
    do {
        if (!append_sizes(list, options, ranks, row))
            return false;
    } while (all && ++row.root < ranks);
    return true;
}

dt_result_t rows_plan(const struct options *options, int ranks,
                      struct row **rows, size_t *n, struct dt_error *err)
{
    struct list list = {0};
    bool reduces = options->operation->data == DATA_REDUCED, done = true;
    bool moves = options->operation->data != DATA_NONE;
    for (int d = 0; done && d < NUMBER_DTYPES; d++)
        for (int o = 0; done && o < NUMBER_OPS; o++)
            if (dt_dtype_size((dt_dtype_t)d) &&
                (moves ? options->dtypes >> d & 1 : d == DT_DTYPE_U8) &&
                (reduces ? options->ops >> o & 1 : o == DT_OP_SUM))
                done = append_roots(
                    &list, options, ranks,
                    (struct row){.dtype = (dt_dtype_t)d, .op = (dt_op_t)o});
    if (!done) {
        free(list.row);
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "more than %d sizes: give a larger -f or -i",
                            MOST_ROWS);
    }
    *rows = list.row;
    *n = list.n;
    return DT_SUCCESS;
}
