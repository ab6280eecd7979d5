/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* floats.h - the values of floating-point elements. */
#ifndef DT_TOOLS_CKPT_FILES_FLOATS_H
#define DT_TOOLS_CKPT_FILES_FLOATS_H

#include "base/error.h"

bool is_float(dt_dtype_t dtype);

/* Element i at data, exactly; NAN if dtype is no floating-point type. */
double float_get(dt_dtype_t dtype, const void *data, size_t i);

#endif
