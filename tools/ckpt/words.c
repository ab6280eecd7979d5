/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* words.c - text for people. */
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "progress.h"

void note(const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *at = text; *at; at++) /* it may quote what is not ours */
        if ((unsigned char)*at < ' ' || *at == '\177')
            *at = '?';
    fflush(stdout);
    progress_clear();
    fprintf(stderr, "dt-ckpt: %s\n", text);
}

dt_result_t no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
}

dt_result_t failed(struct dt_error *err, const char *path)
{
    int why = errno;
    return dt_error_set(err, dt_file_result(why), "%s: %s", path,
                        strerror(why));
}

dt_result_t inside(struct dt_error *err, const char *path, dt_result_t rc)
{
    struct dt_error text = *err;
    return dt_error_set(err, rc, "%s: %s", path, text.text);
}

const char *size_text(char text[SIZE_TEXT], uint64_t bytes)
{
    static const char *const unit[] = {"B",   "KiB", "MiB", "GiB",
                                       "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t i = 0;
    for (; value >= 1024; i++)
        value /= 1024;
    snprintf(text, SIZE_TEXT, "%.*f %s", i == 0 ? 0 : 2, value, unit[i]);
    return text;
}

const char *index_text(char text[INDEX_TEXT], int ndim, const int64_t *index)
{
    size_t at = 1;
    strcpy(text, "[");
    for (int i = 0; i < ndim && at < INDEX_TEXT - 24; i++)
        at += (size_t)snprintf(text + at, INDEX_TEXT - at, "%s%" PRId64,
                               i ? ", " : "", index[i]);
    snprintf(text + at, INDEX_TEXT - at, "]");
    return text;
}

dt_result_t print_json(json_t *root, struct dt_error *err)
{
    if (!root)
        return no_memory(err);
    int rc = json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(root);
    return rc ? dt_error_set(err, DT_ERR_IO, "the JSON could not be written")
              : DT_SUCCESS;
}
