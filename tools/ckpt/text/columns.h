/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* columns.h - rows of text in columns as wide as they need. */
#ifndef DT_TOOLS_CKPT_TEXT_COLUMNS_H
#define DT_TOOLS_CKPT_TEXT_COLUMNS_H

#include "base/error.h"

struct columns {
    size_t columns;
    unsigned right; /* bit c: column c ends at its right */
    size_t count, room;
    char **cell;
    bool failed; /* no memory */
};

/* The next cell; a row is full after columns of them. */
void columns_add(struct columns *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Print and free it. NO_MEMORY. */
dt_result_t columns_print(struct columns *table, struct dt_error *err);

#endif
