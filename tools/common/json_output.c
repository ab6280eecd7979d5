/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* json_output.c - JSON for other programs, which a terminal may get to see. */
#include "common/json_output.h"

/* jansson leaves DEL, which is ASCII, as it is. */
static int put(const char *text, size_t len, void *out)
{
    int rc = 0;
    for (; len > 0 && rc >= 0; text++, len--)
        rc = *text == '\177' ? fputs("\\u007f", out) : fputc(*text, out);
    return rc < 0 ? -1 : 0;
}

bool json_output(FILE *out, const json_t *root)
{
    return json_dump_callback(root, put, out,
                              JSON_INDENT(1) | JSON_REAL_PRECISION(9) |
                                  JSON_ENSURE_ASCII) == 0 &&
           fputc('\n', out) != EOF;
}
