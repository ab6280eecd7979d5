/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.h - what a long run is at, for who sits before it. */
#ifndef DT_TOOLS_CKPT_PROGRESS_H
#define DT_TOOLS_CKPT_PROGRESS_H

#include <stddef.h>

/* From now on what ("verify step-...") is under way, of total bytes. Shown
 * where stderr is a terminal. There is one at a time. */
void progress_start(const char *what, size_t total);

/* So many bytes more. */
void progress_add(size_t bytes);

/* Take it off the screen, for other text; it comes back by itself. */
void progress_clear(void);

/* It is done. */
void progress_end(void);

#endif
