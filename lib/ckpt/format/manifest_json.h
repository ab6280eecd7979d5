/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest_json.h - the manifest, and one rank's part of it, as JSON. */
#ifndef DT_CKPT_FORMAT_MANIFEST_JSON_H
#define DT_CKPT_FORMAT_MANIFEST_JSON_H

#include "ckpt/format/manifest.h"

#define DT_MANIFEST_VERSION 2          /* what is written; 1 is read, too */
#define DT_MANIFEST_MAX     1000000000 /* bytes of text */

/* Print the manifest, always as version 2: *text, which the caller frees, has
 * *len bytes. The only error is NO_MEMORY. */
dt_result_t dt_manifest_print(const struct dt_manifest *manifest, char **text,
                              size_t *len, struct dt_error *err);

/* Parse a manifest of version 1 or 2. All fields are checked: slices lie inside
 * their files and tensors, and those of a GLOBAL tensor cover it without
 * overlap. Of version 1 the slices' offsets are not known yet, see
 * dt_manifest_locate. Errors, whose text is a reason: CORRUPT, VERSION if a
 * newer slurm-dt wrote it, NO_MEMORY. */
dt_result_t dt_manifest_parse(struct dt_manifest *manifest, const char *text,
                              size_t len, struct dt_error *err);

/* ---- a manifest from the parts of all ranks ----
 *
 * Each rank describes what it wrote as JSON text (dt_part_*); rank 0 joins the
 * parts of all ranks (dt_manifest_join). */

struct dt_part;

/* An empty part. NULL: out of memory. */
struct dt_part *dt_part_create(int rank, int node);
void dt_part_destroy(struct dt_part *part); /* NULL is allowed */

/* Add a file that this rank wrote; *index is what dt_part_add_slice expects.
 * Errors: those of dt_build_file. */
dt_result_t dt_part_add_file(struct dt_part *part,
                             const struct dt_manifest_file *file, int *index,
                             struct dt_error *err);

/* Add a slice in one of these files: slice->file is its index. If slice->at is
 * NULL, the slice is the whole tensor, or all bytes of a blob. slice->sum has
 * dt_manifest_blocks(slice->bytes) checksums. Errors: INVALID_ARG, NO_MEMORY.
 */
dt_result_t dt_part_add_slice(struct dt_part *part,
                              const struct dt_tensor *tensor,
                              enum dt_manifest_kind kind, bool replicated,
                              const struct dt_manifest_slice *slice,
                              struct dt_error *err);

/* Print the part: *text, which the caller frees, has *len bytes. */
dt_result_t dt_part_print(const struct dt_part *part, char **text, size_t *len,
                          struct dt_error *err);

/* Join the parts of nparts ranks, text[r] of len[r] bytes: set the files and
 * tensors of manifest; the caller sets the other fields. INVALID_ARG names the
 * tensor and the ranks if parts contradict each other, or if GLOBAL slices
 * leave a gap or overlap ("tensor w: rank 3's part overlaps rank 1's"). */
dt_result_t dt_manifest_join(struct dt_manifest *manifest, int nparts,
                             const char *const *text, const size_t *len,
                             struct dt_error *err);

#endif
