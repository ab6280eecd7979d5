/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.c - the data model of a checkpoint. */
#include "ckpt/format/manifest.h"

#include <stdlib.h>
#include <string.h>

static int compare_name(const void *name, const void *tensor)
{
    const struct dt_manifest_tensor *t = tensor;
    return strcmp(name, t->tensor.name);
}

const struct dt_manifest_tensor *
dt_manifest_find(const struct dt_manifest *manifest, const char *name)
{
    if (manifest->count == 0)
        return NULL;
    return bsearch(name, manifest->tensor, manifest->count,
                   sizeof(*manifest->tensor), compare_name);
}

void dt_manifest_clear(struct dt_manifest *manifest)
{
    free(manifest->file);
    free(manifest->tensor);
    free(manifest->slices);
    free(manifest->coords);
    free(manifest->sums);
    *manifest = (struct dt_manifest){0};
}
