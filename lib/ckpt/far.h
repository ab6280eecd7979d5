/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* far.h - reading what another node has: fetch.h's other half. */
#ifndef DT_CKPT_FAR_H
#define DT_CKPT_FAR_H

#include "ckpt/fetch.h"

/* Reads files in source->fd; keeps the last one open. Begins as
 * {.source = source, .fd = -1}. */
struct dt_reader {
    const struct dt_source *source;
    int file, fd;
};

/* Errors as dt_fetch; also of a range that is not in the file. */
dt_result_t dt_reader_read(struct dt_reader *reader, int file, size_t offset,
                           size_t len, void *to, struct dt_error *err);
void dt_reader_close(struct dt_reader *reader);

/* The reads whose holder is another rank. code and why are how those that this
 * rank holds itself went: what goes wrong on one rank is told to all.
 * Collective over the world. */
dt_result_t dt_far_fetch(const struct dt_source *source,
                         const struct dt_read *read, size_t n, dt_result_t code,
                         const struct dt_error *why, struct dt_error *err);

#endif
