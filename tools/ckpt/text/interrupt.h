/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* interrupt.h - an end by ^C that leaves nothing half-written. */
#ifndef DT_TOOLS_CKPT_TEXT_INTERRUPT_H
#define DT_TOOLS_CKPT_TEXT_INTERRUPT_H

#include "base/error.h"

/* From now on SIGINT, SIGTERM and SIGHUP only ask; the second one ends. */
void interrupt_arm(void);

/* The number of the signal that came, or 0. */
int interrupted(void);

/* SYSTEM, "interrupted", if one came: to be asked in every long loop. */
dt_result_t interrupt_check(struct dt_error *err);

#endif
