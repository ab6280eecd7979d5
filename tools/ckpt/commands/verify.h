/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* verify.h - whether a checkpoint has the checksums of its manifest. */
#ifndef DT_TOOLS_CKPT_COMMANDS_VERIFY_H
#define DT_TOOLS_CKPT_COMMANDS_VERIFY_H

#include "files/checkpoint.h"

/* Called with one line of text for each damaged file or tensor. */
typedef void damage_fn(const char *text, void *arg);

/* Verify every file, header and block. Errors: CORRUPT if something is damaged,
 * NO_MEMORY, "interrupted". */
dt_result_t verify_checkpoint(struct checkpoint *c, damage_fn *fn, void *arg,
                              struct dt_error *err);

#endif
