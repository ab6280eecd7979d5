/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* environment.c - variables of tasks. */
#include "environment.h"

#include <stdio.h>

#include <slurm/slurm.h>

#include "base/env.h"

bool dt_variable_get(spank_t spank, const char *name, char *value, size_t size)
{
    return spank_getenv(spank, name, value, (int)size) == ESPANK_SUCCESS &&
           *value;
}

bool dt_variable_set(spank_t spank, const char *name, const char *value)
{
    return spank_setenv(spank, name, value, 1) == ESPANK_SUCCESS;
}

bool dt_variable_offer(spank_t spank, const char *name, const char *value)
{
    spank_err_t rc =
        *value ? spank_setenv(spank, name, value, 0) : ESPANK_SUCCESS;
    return rc == ESPANK_SUCCESS || rc == ESPANK_ENV_EXISTS;
}

/* SLURM_JOB_ID is the same for all components of a heterogeneous job, the
 * items name the element of an array; both survive a requeue. */
bool dt_variable_offer_run_id(spank_t spank)
{
    char id[64];
    uint32_t array, element;
    if (spank_get_item(spank, S_JOB_ARRAY_ID, &array) == ESPANK_SUCCESS &&
        spank_get_item(spank, S_JOB_ARRAY_TASK_ID, &element) ==
            ESPANK_SUCCESS &&
        array && element != NO_VAL)
        snprintf(id, sizeof(id), "%u_%u", (unsigned)array, (unsigned)element);
    else if (!dt_variable_get(spank, "SLURM_JOB_ID", id, sizeof(id)))
        return false;
    return dt_variable_offer(spank, DT_ENV_RUN_ID, id);
}
