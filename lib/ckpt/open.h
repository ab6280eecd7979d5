/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* open.h - opening and closing a handle. */
#ifndef DT_CKPT_OPEN_H
#define DT_CKPT_OPEN_H

#include "ckpt/handle.h"

/* dt_ckpt_open, after the checks of its arguments. Collective over the world.
 */
dt_result_t dt_open_ckpt(const char *dir, int keep, struct dt_ckpt **ckpt,
                         struct dt_error *err);

/* Wait for a save that is under way, and free the handle. It may be one that
 * was opened only in part. */
void dt_close_ckpt(struct dt_ckpt *ckpt);

#endif
