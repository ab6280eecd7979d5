/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* span.h - the files of one node, laid end to end in the order of their names:
 * the data that redundancy protects. */
#ifndef DT_CKPT_FORMAT_SPAN_H
#define DT_CKPT_FORMAT_SPAN_H

#include "ckpt/format/manifest.h"

struct dt_span {
    size_t count, bytes;
    struct dt_span_part {
        int file; /* index in the manifest */
        size_t start, size;
    } * part;
};

/* Bytes of one file. */
struct dt_span_run {
    int file; /* index in the manifest */
    size_t offset, len;
};

/* The files in the manifest that node wrote. Errors: NO_MEMORY; CORRUPT if
 * their sizes are impossible. */
dt_result_t dt_span_init(struct dt_span *span,
                         const struct dt_manifest *manifest, int node,
                         struct dt_error *err);
void dt_span_clear(struct dt_span *span);

/* The first run of the bytes *at .. end-1 of the span that lies in one file;
 * *at advances past it. False if there are none: after the last file all bytes
 * are zero. */
bool dt_span_next(const struct dt_span *span, size_t *at, size_t end,
                  struct dt_span_run *run);

#endif
