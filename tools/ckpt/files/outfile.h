/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* outfile.h - a file that is written completely or not at all. */
#ifndef DT_TOOLS_CKPT_FILES_OUTFILE_H
#define DT_TOOLS_CKPT_FILES_OUTFILE_H

#include <limits.h>

#include "base/error.h"

struct outfile {
    int dirfd, fd; /* fd: to write, and to read */
    bool force;
    char name[NAME_MAX + 1], tmp[NAME_MAX + 1];
};

/* Create the file path, relative to dirfd, under a temporary name in the same
 * directory. Unless force is set, path must not exist. Errors: INVALID_ARG, IO.
 */
dt_result_t outfile_open(struct outfile *out, int dirfd, const char *path,
                         bool force, struct dt_error *err);

/* If rc is SUCCESS, sync and rename it; else remove it. Returns rc, or an error
 * of its own. */
dt_result_t outfile_close(struct outfile *out, dt_result_t rc,
                          struct dt_error *err);

#endif
