/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rank_name.c - what dt-ckpt export calls that which is not a global tensor. */
#include "files/rank_name.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define RANKS 99999 /* as for --ranks */

void rank_name_print(char name[RANK_NAME_MAX],
                     const struct dt_manifest_tensor *tensor, int rank)
{
    const char *base = tensor->tensor.name;
    if (tensor->kind == DT_MANIFEST_GLOBAL)
        snprintf(name, RANK_NAME_MAX, "%s", base);
    else if (tensor->kind == DT_MANIFEST_OWN)
        snprintf(name, RANK_NAME_MAX, "%s.rank-%d", base, rank);
    else if (tensor->replicated)
        snprintf(name, RANK_NAME_MAX, "%s.blob", base);
    else
        snprintf(name, RANK_NAME_MAX, "%s.blob-%d", base, rank);
}

bool rank_name_parse(const char *name, size_t *len, enum dt_manifest_kind *kind,
                     int *rank)
{
    const char *end = strrchr(name, '.');
    int64_t number;
    if (!end || end == name)
        return false;
    bool blob = strncmp(end, ".blob", 5) == 0;
    if (!blob && strncmp(end, ".rank", 5) != 0)
        return false;
    *len = (size_t)(end - name);
    *kind = blob ? DT_MANIFEST_BLOB : DT_MANIFEST_OWN;
    *rank = -1;
    if (blob && end[5] == '\0')
        return true;
    if (end[5] != '-' || (end[6] == '0' && end[7] != '\0') ||
        !dt_number_parse(end + 6, 0, RANKS - 1, &number))
        return false;
    *rank = (int)number;
    return true;
}
