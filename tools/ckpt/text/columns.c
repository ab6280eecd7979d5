/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* columns.c - a table of text, whose columns are as wide as their cells. */
#include "text/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "ckpt/format/format.h"
#include "common/width.h"

static bool grow(struct columns *table)
{
    if (table->count < table->room)
        return true;
    size_t room = table->room ? 2 * table->room : 64;
    void *more = realloc(table->cell, room * sizeof(*table->cell));
    if (!more)
        return false;
    table->cell = more;
    table->room = room;
    return true;
}

void columns_add(struct columns *table, const char *fmt, ...)
{
    char text[1024], shown[4 * sizeof(text)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    dt_printable(shown, sizeof(shown), text);
    char *copy = grow(table) ? strdup(shown) : NULL;
    if (copy)
        table->cell[table->count++] = copy;
    else
        table->failed = true;
}

static int width_of(const struct columns *table, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < table->count; i += table->columns)
        if (text_width(table->cell[i]) > width)
            width = text_width(table->cell[i]);
    return (int)width;
}

static void print_rows(const struct columns *table, const int *width)
{
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        bool last = column + 1 == table->columns;
        bool right = table->right >> column & 1;
        int blanks = width[column] - (int)text_width(table->cell[i]);
        printf("%*s%s%*s%s", right ? blanks : 0, "", table->cell[i],
               right || last ? 0 : blanks, "", last ? "\n" : "  ");
    }
}

dt_result_t columns_print(struct columns *table, struct dt_error *err)
{
    bool failed = table->failed;
    int width[16];
    for (size_t i = 0; i < table->columns; i++)
        width[i] = width_of(table, i);
    if (!failed)
        print_rows(table, width);
    for (size_t i = 0; i < table->count; i++)
        free(table->cell[i]);
    free(table->cell);
    *table = (struct columns){0};
    return failed ? dt_no_memory(err) : DT_SUCCESS;
}
