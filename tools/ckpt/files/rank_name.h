/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rank_name.h - what dt-ckpt export calls that which is not a global tensor:
 * "NAME.rank-3" is the tensor of rank 3, "NAME.blob-3" the blob of rank 3, and
 * "NAME.blob" the blob that all ranks have. */
#ifndef DT_TOOLS_CKPT_FILES_RANK_NAME_H
#define DT_TOOLS_CKPT_FILES_RANK_NAME_H

#include "ckpt/format/format.h"

#define RANK_NAME_MAX (DT_TENSOR_NAME_MAX + 32)

/* Print the exported name of a tensor or blob, of rank where ranks differ. */
void rank_name_print(char name[RANK_NAME_MAX],
                     const struct dt_manifest_tensor *tensor, int rank);

/* Where is the end of NAME in such a name, and whose is it? False if it is the
 * name of a global tensor. *rank is -1 if all ranks have it. */
bool rank_name_parse(const char *name, size_t *len, enum dt_manifest_kind *kind,
                     int *rank);

#endif
