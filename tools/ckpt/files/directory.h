/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory.h - a checkpoint directory in which something is about to change.
 */
#ifndef DT_TOOLS_CKPT_FILES_DIRECTORY_H
#define DT_TOOLS_CKPT_FILES_DIRECTORY_H

#include "ckpt/format/format.h"

struct directory {
    const char *path; /* borrowed */
    int fd;
    struct dt_directory_lock *lock;
    uint64_t tag; /* a new one */
};

/* Open it, made first if make is set, and take it from any job. Errors: those
 * of dt_directory_lock_take. */
dt_result_t directory_open(struct directory *place, const char *path, bool make,
                           struct dt_error *err);

/* Open it only to look. IO. */
dt_result_t directory_look(struct directory *place, const char *path,
                           struct dt_error *err);

void directory_close(struct directory *place);

/* A checkpoint in the making in it. */
struct new_checkpoint {
    struct directory *place;
    int64_t step;
    char name[DT_STORE_NAME], partial[DT_STORE_NAME];
    int fd; /* of the directory partial */
};

/* Make its directory, empty. Unless force is set, step must not be there:
 * INVALID_ARG. */
dt_result_t new_checkpoint_open(struct new_checkpoint *fresh,
                                struct directory *place, int64_t step,
                                bool force, struct dt_error *err);

/* A new file in it; to be closed with new_checkpoint_close_file, which syncs
 * it. */
dt_result_t new_checkpoint_file(const struct new_checkpoint *fresh,
                                const char *name, int *fd,
                                struct dt_error *err);
dt_result_t new_checkpoint_close_file(int fd, const char *name, dt_result_t rc,
                                      struct dt_error *err);

/* Its files are on disk: write the manifest, and rename it into its place; or
 * remove it, if rc is a failure. Returns rc, or what went wrong. */
dt_result_t new_checkpoint_close(struct new_checkpoint *fresh, const char *text,
                                 size_t len, dt_result_t rc,
                                 struct dt_error *err);

#endif
