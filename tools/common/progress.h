/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.h - the progress line of a long run, on stderr. There is one, since
 * a terminal has one last line. */
#ifndef DT_TOOLS_COMMON_PROGRESS_H
#define DT_TOOLS_COMMON_PROGRESS_H

#include <stdbool.h>

/* Microseconds of CLOCK_MONOTONIC. */
double now_us(void);

/* Show a line every pause_us from now on, if on is set and stderr is a
 * terminal. */
void progress_start(bool on, double pause_us);

/* Is it time for the next line? */
bool progress_due(void);

/* If it is, replace the line by this text. */
void progress_show(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Remove the line before other text; the next one is shown again. */
void progress_clear(void);

/* Remove the line, and show no more. */
void progress_end(void);

#endif
