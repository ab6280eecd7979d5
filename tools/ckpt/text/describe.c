/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* describe.c - sizes, indices and tensors as text. */
#include "text/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

const char *kind_text(const struct dt_manifest_tensor *t)
{
    switch (t->kind) {
    case DT_MANIFEST_GLOBAL:
        return t->replicated ? "replicated" : "global";
    case DT_MANIFEST_OWN:
        return "own";
    case DT_MANIFEST_BLOB:
        return t->replicated ? "replicated blob" : "blob";
    }
    return "unknown";
}

size_t stored_bytes(const struct dt_manifest_tensor *t)
{
    size_t bytes = 0;
    for (size_t i = 0; i < t->nslices; i++)
        bytes += t->slice[i].bytes;
    return bytes;
}
