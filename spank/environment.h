/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* environment.h - variables of the step, or in task_init of one task, as Slurm
 * keeps them. The functions return false where Slurm refuses. */
#ifndef DT_SPANK_ENVIRONMENT_H
#define DT_SPANK_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

/* The value of the variable; false as well if it is unset, empty, or does not
 * fit. */
bool dt_variable_get(spank_t spank, const char *name, char *value, size_t size);

/* Set it, whatever it was. */
bool dt_variable_set(spank_t spank, const char *name, const char *value);

/* Set it unless the user has, or value is empty. */
bool dt_variable_offer(spank_t spank, const char *name, const char *value);

/* Offer DT_RUN_ID. */
bool dt_variable_offer_run_id(spank_t spank);

#endif
