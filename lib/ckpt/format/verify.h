/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* verify.h - whether a file has the checksums of the manifest. */
#ifndef DT_CKPT_FORMAT_VERIFY_H
#define DT_CKPT_FORMAT_VERIFY_H

#include "ckpt/format/manifest.h"

/* Read the manifest's file number `file`, which is open as fd, and compare it
 * with its checksums. Errors, whose text is a reason without the file's name:
 * CORRUPT, NO_MEMORY. */
dt_result_t dt_verify_file(const struct dt_manifest *manifest, int file, int fd,
                           struct dt_error *err);

/* The same for the bytes of a file that the caller passes in order. */
struct dt_verify;

/* Begin with a file; the manifest must outlive verify. Error: NO_MEMORY. */
dt_result_t dt_verify_begin(struct dt_verify **verify,
                            const struct dt_manifest *manifest, int file,
                            struct dt_error *err);

/* Add the next bytes. */
void dt_verify_add(struct dt_verify *verify, const void *data, size_t len);

/* The result after the last byte: CORRUPT if a checksum differs, or if there
 * were too few bytes. */
dt_result_t dt_verify_end(struct dt_verify *verify, struct dt_error *err);

void dt_verify_destroy(struct dt_verify *verify); /* NULL is allowed */

#endif
