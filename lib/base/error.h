/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* error.h - a result with one line of text: written by the function that fails,
 * printed once, by the program or the public API. */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#include "dt.h"

/* Write the text, cut to its room, and return code, so that a function can
 * `return dt_error_set(err, DT_ERR_IO, "...", ...)`. err may be NULL. */
dt_result_t dt_error_set(struct dt_error *err, dt_result_t code,
                         const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* NO_MEMORY, "out of memory". */
dt_result_t dt_no_memory(struct dt_error *err);

/* Print "dt: ..." on stderr, for what is no error of the call: one line of
 * 1023 bytes at most, made printable as it may quote the files of others. */
void dt_report(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
