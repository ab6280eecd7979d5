/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place.h - a checkpoint directory in which something is about to change. */
#ifndef DT_TOOLS_CKPT_PLACE_H
#define DT_TOOLS_CKPT_PLACE_H

#include "ckpt/guard.h"
#include "ckpt/manifest.h"
#include "ckpt/store.h"

struct place {
    const char *path; /* borrowed */
    int fd;
    struct dt_guard *guard;
    uint64_t tag; /* a new one */
};

/* Open it, made first if make is set, and take it from any job. Errors: those
 * of dt_guard_take. */
dt_result_t place_open(struct place *place, const char *path, bool make,
                       struct dt_error *err);

/* Open it only to look. IO. */
dt_result_t place_look(struct place *place, const char *path,
                       struct dt_error *err);

void place_close(struct place *place);

/* A checkpoint in the making in it. */
struct fresh {
    struct place *place;
    int64_t step;
    char name[DT_STORE_NAME], partial[DT_STORE_NAME];
    int fd; /* of the directory partial */
};

/* Make its directory, empty. Unless force is set, step must not be there:
 * INVALID_ARG. */
dt_result_t fresh_open(struct fresh *fresh, struct place *place, int64_t step,
                       bool force, struct dt_error *err);

/* A new file in it; to be closed with fresh_file_close, which syncs it. */
dt_result_t fresh_file(const struct fresh *fresh, const char *name, int *fd,
                       struct dt_error *err);
dt_result_t fresh_file_close(int fd, const char *name, dt_result_t rc,
                             struct dt_error *err);

/* Its files are on disk: write the manifest, and rename it into its place; or
 * remove it, if rc is a failure. Returns rc, or what went wrong. */
dt_result_t fresh_close(struct fresh *fresh, const char *text, size_t len,
                        dt_result_t rc, struct dt_error *err);

#endif
