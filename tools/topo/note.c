/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* note.c - errors and notes for the user. */
#include "topo.h"

dt_result_t fail(struct dt_error *err, dt_result_t code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    return code;
}

void note(FILE *notes, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *at = text; *at; at++) /* it may quote a file that is not ours */
        if ((unsigned char)*at < ' ' || *at == '\177')
            *at = '?';
    fprintf(notes, "dt-topo: %s\n", text);
}
