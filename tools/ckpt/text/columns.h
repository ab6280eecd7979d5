/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* columns.h - a table of text, whose columns are as wide as their cells. */
#ifndef DT_TOOLS_CKPT_TEXT_COLUMNS_H
#define DT_TOOLS_CKPT_TEXT_COLUMNS_H

#include "base/error.h"

struct columns {
    size_t columns;
    unsigned right; /* bit c: column c is aligned to the right */
    size_t count, room;
    char **cell;
    bool failed; /* no memory */
};

/* Add the next cell, its text made printable; a row has table->columns cells.
 */
void columns_add(struct columns *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Print the table, and free it. Error: NO_MEMORY. */
dt_result_t columns_print(struct columns *table, struct dt_error *err);

#endif
