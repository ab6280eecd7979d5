/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* open.h - opening and closing a handle. */
#ifndef DT_CKPT_OPEN_H
#define DT_CKPT_OPEN_H

#include "ckpt/ckpt.h"

/* dt_ckpt_open behind the argument checks. */
dt_result_t dt_ckpt_do_open(const char *dir, int keep, struct dt_ckpt **ckpt,
                            struct dt_error *err);

/* Also of one whose opening failed half-way. */
void dt_ckpt_do_close(struct dt_ckpt *ckpt);

#endif
