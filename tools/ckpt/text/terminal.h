/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* terminal.h - what the user sees: JSON, and the progress bar of a long run. */
#ifndef DT_TOOLS_CKPT_TEXT_TERMINAL_H
#define DT_TOOLS_CKPT_TEXT_TERMINAL_H

#include <jansson.h>

#include "base/error.h"
#include "common/progress.h"
#include "common/streams.h"

/* Print root on stdout, and free it. Errors: NO_MEMORY if root is NULL, IO. */
dt_result_t print_json(json_t *root, struct dt_error *err);

/* Begin to show the progress of what ("verify step-..."), of total bytes, if
 * stderr is a terminal, until progress_end(). */
void bar_start(const char *what, size_t total);

/* So many bytes more are done. */
void bar_add(size_t bytes);

#endif
