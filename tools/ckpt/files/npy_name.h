/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* npy_name.h - the name of a tensor as that of a file. */
#ifndef DT_TOOLS_CKPT_FILES_NPY_NAME_H
#define DT_TOOLS_CKPT_FILES_NPY_NAME_H

#include <limits.h>

#include "base/error.h"

/* Letters, digits, "-", "_" and "." stay, all else, and a first ".", becomes
 * %XX; ".npy" is added. INVALID_ARG if that is longer than a name may be. */
dt_result_t npy_name_of(const char *tensor, char file[NAME_MAX + 1],
                        struct dt_error *err);

/* The name of the tensor in the file path. False if it is too long. */
bool npy_name_parse(const char *path, char *tensor, size_t room);

#endif
