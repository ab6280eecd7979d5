/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* assign.h - which rank writes what several ranks have. */
#ifndef DT_CKPT_SAVE_ASSIGN_H
#define DT_CKPT_SAVE_ASSIGN_H

#include "ckpt/handle.h"

/* Set writes of everything the program has named: what several ranks have is
 * written by one of them. Collective over ckpt->comm if the names have changed
 * since the last call, else local. Errors, the same on all ranks: INVALID_ARG
 * if the ranks have named different things, NO_MEMORY, those of the
 * collectives. */
dt_result_t dt_assign(struct dt_ckpt *ckpt, int64_t step, struct dt_error *err);

#endif
