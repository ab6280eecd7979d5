/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rebuild.h - rebuilding the files of lost nodes. */
#ifndef DT_CKPT_REDUNDANCY_REBUILD_H
#define DT_CKPT_REDUNDANCY_REBUILD_H

#include "ckpt/handle.h"
#include "ckpt/source.h"

/* Rebuild the files that no rank holds (holder < 0, the same on all ranks;
 * there is at least one): the ranks that will most likely load them write them
 * into source->fd. Sets holder. With check, a parity file is used only if its
 * checksums are right. Collective over the world, with one result for all
 * ranks. Errors: CORRUPT, which lists what is missing, if too much is lost;
 * CORRUPT and *damaged if a file that is there cannot be read, or if a rebuilt
 * file does not match the manifest; IO, NO_SPACE, NO_MEMORY, those of the
 * collectives. */
dt_result_t dt_rebuild(struct dt_ckpt *ckpt, struct dt_source *source,
                       bool check, bool *damaged, struct dt_error *err);

#endif
