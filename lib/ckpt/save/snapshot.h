/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* snapshot.h - the memory to which this rank's tensors are copied: files in the
 * memory of the node, which outlive the process, or private memory.
 *
 * There are two such files, slots/rank-00003.0 and .1 in the directory of the
 * memory tier. Their pages stay allocated, so that only the first copy into
 * each file pays for them. A finished file is linked into the directory of its
 * checkpoint, and is not reused while it is there. */
#ifndef DT_CKPT_SAVE_SNAPSHOT_H
#define DT_CKPT_SAVE_SNAPSHOT_H

#include "ckpt/copy.h"

#define DT_SNAPSHOT_SLOTS "slots"

struct dt_snapshot;

/* Use the memory of the node in the directory dirfd, of which ownership is
 * transferred on success; -1: private memory. The only error is NO_MEMORY. */
dt_result_t dt_snapshot_open(int dirfd, int rank, struct dt_snapshot **snapshot,
                             struct dt_error *err);

/* Get size bytes of memory with all pages allocated, valid until the next call.
 * Errors: NO_SPACE, IO, NO_MEMORY. */
dt_result_t dt_snapshot_take(struct dt_snapshot *snapshot, size_t size,
                             char **image, struct dt_error *err);

/* Pin that memory for copies from GPUs. It stays pinned while dt_snapshot_take
 * returns the same. copy must outlive the snapshot. Errors: those of
 * dt_copy_pin. */
dt_result_t dt_snapshot_pin(struct dt_snapshot *snapshot, struct dt_copy *copy,
                            struct dt_error *err);

/* Link the file of that memory into the directory dirfd, as name. Errors: IO,
 * NO_SPACE; UNSUPPORTED for private memory. */
dt_result_t dt_snapshot_link(struct dt_snapshot *snapshot, int dirfd,
                             const char *name, struct dt_error *err);

/* Use private memory from the next dt_snapshot_take on. */
void dt_snapshot_privatize(struct dt_snapshot *snapshot);

/* Is it memory of the node? */
bool dt_snapshot_outlives(const struct dt_snapshot *snapshot);

/* Free the memory, but leave the files. NULL is allowed. */
void dt_snapshot_close(struct dt_snapshot *snapshot);

#endif
