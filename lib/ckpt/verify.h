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

#endif
