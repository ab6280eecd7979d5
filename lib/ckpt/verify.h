/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* verify.h - is a file what the manifest says? */
#ifndef DT_CKPT_VERIFY_H
#define DT_CKPT_VERIFY_H

#include "ckpt/manifest.h"

/* Read all of the manifest's file number `file`, open as fd, and compare it
 * with its sums. Errors, whose text is a reason without the file's name:
 * CORRUPT, NO_MEMORY. */
dt_result_t dt_verify_file(const struct dt_manifest *manifest, int file, int fd,
                           struct dt_error *err);

/* The same of bytes that come one behind the other. */
struct dt_verify;

/* manifest outlives it. NO_MEMORY. */
dt_result_t dt_verify_begin(struct dt_verify **verify,
                            const struct dt_manifest *manifest, int file,
                            struct dt_error *err);
void dt_verify_add(struct dt_verify *verify, const void *data, size_t len);

/* After the last: CORRUPT, also if there were too few. */
dt_result_t dt_verify_end(struct dt_verify *verify, struct dt_error *err);
void dt_verify_destroy(struct dt_verify *verify);

#endif
