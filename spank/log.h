/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* log.h - lines of the plugin in slurmd's log and on standard error. A text may
 * be a user's: what could end the line or control a terminal is escaped, and
 * the line is cut at about a thousand bytes. */
#ifndef DT_SPANK_LOG_H
#define DT_SPANK_LOG_H

/* "dt: TEXT" as an error. */
void dt_log_error(const char *text);

/* "dt: note: ..." */
void dt_log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
