/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* table.h - rows of text in columns as wide as they need. */
#ifndef DT_TOOLS_CKPT_TABLE_H
#define DT_TOOLS_CKPT_TABLE_H

#include "base/error.h"

struct table {
    size_t columns;
    unsigned right; /* bit c: column c ends at its right */
    size_t count, room;
    char **cell;
    bool failed; /* no memory */
};

/* The next cell; a row is full after columns of them. */
void table_add(struct table *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Print and free it. NO_MEMORY. */
dt_result_t table_print(struct table *table, struct dt_error *err);

#endif
