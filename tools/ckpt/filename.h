/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* filename.h - the name of a tensor as that of a file. */
#ifndef DT_TOOLS_CKPT_FILENAME_H
#define DT_TOOLS_CKPT_FILENAME_H

#include <limits.h>

#include "base/error.h"

/* Letters, digits, "-", "_" and "." stay, all else, and a first ".", becomes
 * %XX; ".npy" is added. INVALID_ARG if that is longer than a name may be. */
dt_result_t filename_of(const char *tensor, char file[NAME_MAX + 1],
                        struct dt_error *err);

/* The other way; path may have folders in front. False if it is too long. */
bool filename_read(const char *path, char *tensor, size_t room);

#endif
