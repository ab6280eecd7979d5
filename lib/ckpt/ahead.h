/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ahead.h - reading from a disk what will be asked for next, while what came
 * before is worked on: a thread, and three pieces of memory that go round. */
#ifndef DT_CKPT_AHEAD_H
#define DT_CKPT_AHEAD_H

#include "ckpt/fetch.h"

struct dt_ahead;

/* source outlives it. NO_MEMORY. */
dt_result_t dt_ahead_open(struct dt_ahead **ahead,
                          const struct dt_source *source, struct dt_error *err);

/* What will be asked for: at most DT_MANIFEST_BLOCK bytes of a file that is in
 * source->fd, behind all that was added before. NO_MEMORY. */
dt_result_t dt_ahead_add(struct dt_ahead *ahead, int file, size_t offset,
                         size_t len, struct dt_error *err);

/* Begin to read. False where that would gain nothing, as of little, of what is
 * in memory already, and where the file system has no way around its page
 * cache: then nothing may be taken. */
bool dt_ahead_start(struct dt_ahead *ahead);

/* Wait for the next of what was added; *data stays until the one after it is
 * taken. Errors, behind which nothing may be taken: those of dt_reader_read. */
dt_result_t dt_ahead_take(struct dt_ahead *ahead, char **data,
                          struct dt_error *err);

/* Waits for no more than the read that is under way. NULL is fine. */
void dt_ahead_close(struct dt_ahead *ahead);

#endif
