/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest_file.h - the file manifest.json of a checkpoint. */
#ifndef DT_CKPT_FORMAT_MANIFEST_FILE_H
#define DT_CKPT_FORMAT_MANIFEST_FILE_H

#include "ckpt/format/manifest.h"

#define DT_MANIFEST_TMP "manifest.json.tmp"

/* Read the text of the manifest in the directory dirfd: *text, which the caller
 * frees, has *len bytes and room for 8 more. Errors: CORRUPT, IO, NO_MEMORY. */
dt_result_t dt_manifest_text(int dirfd, char **text, size_t *len,
                             struct dt_error *err);

/* Read and parse the manifest in the directory dirfd, and locate its slices.
 * *identity is the checksum of its text. Errors: those of dt_manifest_text,
 * dt_manifest_parse and dt_manifest_locate. */
dt_result_t dt_manifest_read(struct dt_manifest *manifest, int dirfd,
                             uint64_t *identity, struct dt_error *err);

/* Set the offsets of the slices of a manifest of version 1, which only the
 * headers of the files in the directory dirfd contain. Version 2 has them
 * already. Errors: CORRUPT, IO, NO_MEMORY. */
dt_result_t dt_manifest_locate(struct dt_manifest *manifest, int dirfd,
                               struct dt_error *err);

/* The error for errno after opening name, a file that the checkpoint should
 * have, has failed: CORRUPT if the checkpoint is to blame, else IO or another
 * code. */
dt_result_t dt_manifest_unopened(const char *name, struct dt_error *err);

/* Open file number f of the manifest in the directory dirfd, and check its
 * size; *fd is to be closed. Errors: those of dt_manifest_unopened. */
dt_result_t dt_manifest_open_file(const struct dt_manifest *manifest, int f,
                                  int dirfd, int *fd, struct dt_error *err);

/* Write the manifest into the directory dirfd: as manifest.json.tmp, synced,
 * renamed, the directory synced. After an error there is no manifest.json.
 * Errors: IO, NO_SPACE. */
dt_result_t dt_manifest_put(int dirfd, const char *text, size_t len,
                            struct dt_error *err);

#endif
