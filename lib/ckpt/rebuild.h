/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rebuild.h - bringing back the files that lost nodes had. */
#ifndef DT_CKPT_REBUILD_H
#define DT_CKPT_REBUILD_H

#include "ckpt/ckpt.h"
#include "ckpt/fetch.h"

/* Have the files that nobody has (holder < 0; it is the same on all ranks, and
 * there are some) written by those who most likely want them, into source->fd,
 * and set holder. check: use no parity but what its sums say is whole.
 * Collective over the world; one result for all. Errors: CORRUPT with the list
 * of what is missing if too much is lost; CORRUPT and *damaged if something
 * that is there cannot be read, or what came out is not what the manifest says;
 * IO, NO_SPACE, NO_MEMORY, those of the collectives. */
dt_result_t dt_rebuild(struct dt_ckpt *ckpt, struct dt_source *source,
                       bool check, bool *damaged, struct dt_error *err);

#endif
