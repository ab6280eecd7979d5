/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory.h - a checkpoint directory that a command changes. */
#ifndef DT_TOOLS_CKPT_FILES_DIRECTORY_H
#define DT_TOOLS_CKPT_FILES_DIRECTORY_H

#include "ckpt/format/format.h"

struct directory {
    const char *path; /* borrowed */
    int fd;
    struct dt_directory_lock *lock;
    uint64_t tag; /* of new checkpoints */
};

/* Open and lock the directory path; make: create it first. Errors: IO, those of
 * dt_directory_lock_take. */
dt_result_t directory_open(struct directory *place, const char *path, bool make,
                           struct dt_error *err);

/* Open it only to read. Error: IO. */
dt_result_t directory_look(struct directory *place, const char *path,
                           struct dt_error *err);

void directory_close(struct directory *place);

/* A checkpoint that is being written in it. */
struct new_checkpoint {
    struct directory *place;
    int64_t step;
    char name[DT_STORE_NAME], partial[DT_STORE_NAME];
    int fd; /* of the directory partial */
};

/* Create its empty directory. Unless force is set, step must not exist:
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

/* If rc is SUCCESS, write the manifest and rename the directory, whose files
 * are on disk; else remove it. Returns rc, or an error of its own. */
dt_result_t new_checkpoint_close(struct new_checkpoint *fresh, const char *text,
                                 size_t len, dt_result_t rc,
                                 struct dt_error *err);

#endif
