/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* input.h - all bytes of a file or a pipe, up to DT_TOPO_MAX_FILE, with a NUL
 * behind them that *len does not count. The caller frees *data. */
#ifndef DT_TOPO_INPUT_H
#define DT_TOPO_INPUT_H

#include "base/error.h"

/* What is left of fd. Blocks for at most seconds between two writes to a pipe.
 * IO, also when that time is up; CORRUPT: too large; NO_MEMORY. */
dt_result_t dt_input_read(int fd, int seconds, char **data, size_t *len,
                          struct dt_error *err);

/* The file or pipe at path, "-" is standard input; 60 s. NOT_FOUND too. */
dt_result_t dt_input_load(const char *path, char **data, size_t *len,
                          struct dt_error *err);

#endif
