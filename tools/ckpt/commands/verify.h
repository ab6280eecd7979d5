/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* verify.h - whether all bytes of a checkpoint are as they were written. */
#ifndef DT_TOOLS_CKPT_COMMANDS_VERIFY_H
#define DT_TOOLS_CKPT_COMMANDS_VERIFY_H

#include "files/checkpoint.h"

/* Called once for each thing that is damaged, with one line about it. */
typedef void damage_fn(const char *text, void *arg);

/* Every file, header and block. CORRUPT if something is damaged; else
 * NO_MEMORY, or "interrupted". */
dt_result_t verify_checkpoint(struct checkpoint *c, damage_fn *fn, void *arg,
                              struct dt_error *err);

#endif
