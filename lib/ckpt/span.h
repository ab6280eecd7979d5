/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* span.h - the files of one node, laid end to end by name: what redundancy
 * protects. */
#ifndef DT_CKPT_SPAN_H
#define DT_CKPT_SPAN_H

#include "ckpt/fetch.h"

struct dt_span {
    size_t count, bytes;
    struct dt_span_part {
        int file; /* index in the manifest */
        size_t start, size;
    } * part;
};

/* Those of the manifest's files that node wrote. NO_MEMORY; CORRUPT if their
 * sizes are absurd. */
dt_result_t dt_span_init(struct dt_span *span,
                         const struct dt_manifest *manifest, int node,
                         struct dt_error *err);
void dt_span_clear(struct dt_span *span);

/* Of the bytes *at .. end-1 the first ones that are in one file: run->file,
 * offset and len; *at moves behind them. False where there are none; behind
 * the last file all is zero. */
bool dt_span_next(const struct dt_span *span, size_t *at, size_t end,
                  struct dt_read *run);

#endif
