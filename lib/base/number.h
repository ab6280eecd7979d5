/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* number.h - numbers in text that a user, Slurm or another program wrote.
 *
 * The whole text has to be a number within the limits, which are part of the
 * range: no blank before it, no '+', nothing behind it. NULL and "" are not
 * numbers. The locale does not matter, and errno stays as it is. Outputs are
 * set on success only. */
#ifndef DT_BASE_NUMBER_H
#define DT_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The digits at *at, of base 10 or 16 and without a prefix, at most max. *at
 * moves behind them; it stays, and false is returned, where there is no digit
 * or the number is larger. For numbers inside a longer text. */
bool dt_number_scan(const char **at, unsigned base, uint64_t max,
                    uint64_t *value);

/* A whole decimal number; '-' may precede it if min is negative. */
bool dt_number_parse(const char *text, int64_t min, int64_t max,
                     int64_t *value);

/* The same for numbers that users write: INVALID_ARG if it is none, with the
 * text "<what><text>: expected a whole number from <min> to <max>". what names
 * the place and ends with what separates it: "DT_TIMEOUT=", "--timeout ". */
dt_result_t dt_number_read(const char *what, const char *text, int64_t min,
                           int64_t max, int64_t *value, struct dt_error *err);

/* Bytes: "4096", "64K", "16m", "1G" or "1T", in powers of 1024. */
dt_result_t dt_number_read_size(const char *what, const char *text,
                                uint64_t min, uint64_t max, uint64_t *bytes,
                                struct dt_error *err);

/* A decimal number with or without fraction and exponent: "2.5e-7". */
dt_result_t dt_number_read_real(const char *what, const char *text, double min,
                                double max, double *value,
                                struct dt_error *err);

#endif
