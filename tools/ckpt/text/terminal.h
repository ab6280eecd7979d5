/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* terminal.h - what the user sees: messages, JSON, and the progress of a long
 * run. */
#ifndef DT_TOOLS_CKPT_TEXT_TERMINAL_H
#define DT_TOOLS_CKPT_TEXT_TERMINAL_H

#include <jansson.h>

#include "base/error.h"

/* Print "dt-ckpt: ..." as a line on stderr. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print root on stdout, and free it. Errors: NO_MEMORY if root is NULL, IO. */
dt_result_t print_json(json_t *root, struct dt_error *err);

/* Begin to show the progress of what ("verify step-..."), of total bytes, if
 * stderr is a terminal. There is one progress bar at a time. */
void progress_start(const char *what, size_t total);

/* So many bytes more are done. */
void progress_add(size_t bytes);

/* Remove it from the screen before other text; the next progress_add shows it
 * again. */
void progress_clear(void);

/* End it. */
void progress_end(void);

/* Seconds of a clock that nobody sets. */
double clock_seconds(void);

#endif
