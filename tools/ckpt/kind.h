/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kind.h - how a tensor belongs to the ranks, in words. */
#ifndef DT_TOOLS_CKPT_KIND_H
#define DT_TOOLS_CKPT_KIND_H

#include "ckpt/manifest.h"

/* "global", "replicated", "own", "blob" or "replicated blob". */
static inline const char *kind_text(const struct dt_manifest_tensor *t)
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

/* All that is stored of it. */
static inline size_t stored_bytes(const struct dt_manifest_tensor *t)
{
    size_t bytes = 0;
    for (size_t i = 0; i < t->nslices; i++)
        bytes += t->slice[i].bytes;
    return bytes;
}

#endif
