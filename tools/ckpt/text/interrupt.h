/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* interrupt.h - an end by ^C that leaves no unfinished files. */
#ifndef DT_TOOLS_CKPT_TEXT_INTERRUPT_H
#define DT_TOOLS_CKPT_TEXT_INTERRUPT_H

#include "base/error.h"

/* From now on SIGINT, SIGTERM and SIGHUP are only noted; the second one ends
 * the program. */
void interrupt_arm(void);

/* The number of the signal that was received, or 0. */
int interrupted(void);

/* SYSTEM, "interrupted", after a signal. Every long loop calls it. */
dt_result_t interrupt_check(struct dt_error *err);

#endif
