/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* snapshot.h - where this rank's part of a checkpoint is copied to: files in
 * the memory of the node, which outlive the process; else private memory.
 *
 * There are two such files, slots/rank-00003.0 and .1 in the directory of the
 * memory tier. Their pages stay, so that only the first copy into each pays for
 * them. A finished one is linked into the directory of its checkpoint, and is
 * not written again before it is out of there. */
#ifndef DT_CKPT_SNAPSHOT_H
#define DT_CKPT_SNAPSHOT_H

#include "ckpt/copy.h"

#define DT_SNAPSHOT_SLOTS "slots"

struct dt_snapshot;

/* Memory of the node in the directory dirfd, whose descriptor it takes; -1:
 * private memory. Only NO_MEMORY, and then dirfd is not taken. */
dt_result_t dt_snapshot_open(int dirfd, int rank, struct dt_snapshot **snapshot,
                             struct dt_error *err);

/* size bytes of memory, whose pages are there, and free. Valid until the next
 * call. Errors: NO_SPACE, IO, NO_MEMORY. */
dt_result_t dt_snapshot_take(struct dt_snapshot *snapshot, size_t size,
                             char **image, struct dt_error *err);

/* Pin what was taken, for copies from the GPUs; it stays so as long as the same
 * memory is taken again. Those of dt_copy_pin; copy outlives the snapshot. */
dt_result_t dt_snapshot_pin(struct dt_snapshot *snapshot, struct dt_copy *copy,
                            struct dt_error *err);

/* Link what was taken into the directory dirfd, as name. Errors: IO, NO_SPACE;
 * UNSUPPORTED for private memory. */
dt_result_t dt_snapshot_link(struct dt_snapshot *snapshot, int dirfd,
                             const char *name, struct dt_error *err);

/* Go over to private memory with the next take. */
void dt_snapshot_privatize(struct dt_snapshot *snapshot);

/* Is it memory of the node? */
bool dt_snapshot_outlives(const struct dt_snapshot *snapshot);

/* Give back the memory, not the files. NULL is fine. */
void dt_snapshot_close(struct dt_snapshot *snapshot);

#endif
