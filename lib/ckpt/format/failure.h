/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* failure.h - errors that many files report. */
#ifndef DT_CKPT_FORMAT_FAILURE_H
#define DT_CKPT_FORMAT_FAILURE_H

#include "base/error.h"

/* "WHAT: " and the text of errno; the code is dt_file_result(errno). */
dt_result_t dt_failed(struct dt_error *err, const char *what);

/* Put "WHERE: " before the text of err. Returns rc. */
dt_result_t dt_failed_in(struct dt_error *err, const char *where,
                         dt_result_t rc);

#endif
