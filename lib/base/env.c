/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* env.c - read variables of slurm-dt. */
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"

dt_result_t dt_env_long(const char *name, long fallback, long min, long max,
                        long *value, struct dt_error *err)
{
    const char *text = getenv(name);
    if (!text || !*text) {
        *value = fallback;
        return DT_SUCCESS;
    }
    char what[64];
    int64_t number;
    snprintf(what, sizeof(what), "%s=", name);
    dt_result_t rc = dt_number_read(what, text, min, max, &number, err);
    if (rc == DT_SUCCESS)
        *value = (long)number;
    return rc;
}

dt_result_t dt_env_check_version(struct dt_error *err)
{
    long version;
    if (dt_env_long(DT_ENV_VERSION, DT_ENV_VERSION_NOW, 0, 1000000, &version,
                    err) != DT_SUCCESS)
        return DT_ERR_VERSION;
    if (version != DT_ENV_VERSION_NOW)
        return dt_error_set(
            err, DT_ERR_VERSION,
            "the SPANK plugin has environment version %ld, this libdt has %d: "
            "install both from the same slurm-dt",
            version, DT_ENV_VERSION_NOW);
    return DT_SUCCESS;
}
