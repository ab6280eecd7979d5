/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* api.h - the edge of the public API, where a dt_error becomes the text of
 * dt_last_error(). */
#ifndef DT_BASE_API_H
#define DT_BASE_API_H

#include "base/error.h"

/* Return code. If it is an error, this thread's dt_last_error() returns
 * err->text from now on, made printable, or dt_strerror(code) if err is NULL or
 * empty. A public function ends with `return dt_api_return(code, &err)`. */
dt_result_t dt_api_return(dt_result_t code, const struct dt_error *err);

#endif
