/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* compose.h - a new checkpoint from items, for import and reshard. */
#ifndef DT_TOOLS_CKPT_FILES_COMPOSE_H
#define DT_TOOLS_CKPT_FILES_COMPOSE_H

#include "files/directory.h"
#include "files/shard_file.h"

/* What each rank writes. */
struct rank_items {
    size_t n;
    struct item *item;
};

/* Write the items of ranks[head->world_size] as checkpoint head->step in the
 * directory dir. head has the fields of the manifest except files and tensors.
 * Unless force is set, the checkpoint must not exist. */
dt_result_t compose(const char *dir, const struct dt_manifest *head,
                    struct rank_items *ranks, bool force, struct dt_error *err);

#endif
