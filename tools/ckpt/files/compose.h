/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* compose.h - a checkpoint of one's own, from items: import and reshard. */
#ifndef DT_TOOLS_CKPT_FILES_COMPOSE_H
#define DT_TOOLS_CKPT_FILES_COMPOSE_H

#include "files/directory.h"
#include "files/shard_file.h"

/* What each rank writes. */
struct rank_items {
    size_t n;
    struct item *item;
};

/* Write it as checkpoint head->step in the directory dir; head says what a
 * manifest has besides files and tensors, ranks[head->world_size] the rest.
 * Unless force is set, it must not be there. */
dt_result_t compose(const char *dir, const struct dt_manifest *head,
                    struct rank_items *ranks, bool force, struct dt_error *err);

#endif
