/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fetch.h - reading the files of a checkpoint, on this node or from another. */
#ifndef DT_CKPT_LOAD_FETCH_H
#define DT_CKPT_LOAD_FETCH_H

#include "ckpt/source.h"

struct dt_read {
    int file; /* index in the manifest */
    size_t offset, len;
    void *to;
};

/* Do all reads. If the source is shared, this is local. Otherwise it is
 * collective over the world, also for ranks that read nothing, with one result
 * for all ranks; it takes at most 64 MiB of memory beyond what is read into.
 * Errors, whose text is a reason with the file's name: CORRUPT if a file is
 * missing, has another size or cannot be read; IO, NO_MEMORY, those of the
 * collectives. */
dt_result_t dt_fetch(const struct dt_source *source, const struct dt_read *read,
                     size_t n, struct dt_error *err);

#endif
