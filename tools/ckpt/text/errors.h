/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* errors.h - errors that many files report. */
#ifndef DT_TOOLS_CKPT_TEXT_ERRORS_H
#define DT_TOOLS_CKPT_TEXT_ERRORS_H

#include "base/error.h"

/* NO_MEMORY, "out of memory". */
dt_result_t no_memory(struct dt_error *err);

/* "PATH: " and the text of errno; IO or NO_SPACE. */
dt_result_t failed(struct dt_error *err, const char *path);

/* Put "PATH: " before the text of err. Returns rc. */
dt_result_t inside(struct dt_error *err, const char *path, dt_result_t rc);

#endif
