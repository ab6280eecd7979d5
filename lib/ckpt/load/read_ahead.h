/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* read_ahead.h - a thread that reads from disk the blocks that will be needed
 * next, into three buffers that are used in turn. */
#ifndef DT_CKPT_LOAD_READ_AHEAD_H
#define DT_CKPT_LOAD_READ_AHEAD_H

#include "ckpt/source.h"

struct dt_read_ahead;

/* source must outlive it. Error: NO_MEMORY. */
dt_result_t dt_read_ahead_open(struct dt_read_ahead **ahead,
                               const struct dt_source *source,
                               struct dt_error *err);

/* Add a block to the end of the list: at most DT_MANIFEST_BLOCK bytes of a file
 * in source->fd. Error: NO_MEMORY. */
dt_result_t dt_read_ahead_add(struct dt_read_ahead *ahead, int file,
                              size_t offset, size_t len, struct dt_error *err);

/* Begin to read. False if that would gain nothing: if the list is short, if
 * much of it is in the page cache, or if the file system has no O_DIRECT. Then
 * no block may be taken. */
bool dt_read_ahead_start(struct dt_read_ahead *ahead);

/* Block until the next block of the list is read; *data is valid until the next
 * call. Errors, after which no block may be taken: those of dt_reader_read. */
dt_result_t dt_read_ahead_take(struct dt_read_ahead *ahead, char **data,
                               struct dt_error *err);

/* Blocks only for the read that is under way. NULL is allowed. */
void dt_read_ahead_close(struct dt_read_ahead *ahead);

#endif
