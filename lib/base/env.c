/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* env.c - reading the environment contract. */
#include "base/env.h"

#include <errno.h>
#include <stdlib.h>

dt_result_t dt_env_long(const char *name, long fallback, long min, long max,
                        long *value, struct dt_error *err)
{
    const char *text = getenv(name);
    if (!text || !*text) {
        *value = fallback;
        return DT_SUCCESS;
    }
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || *end || end == text || number < min || number > max)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s=%s: expected a whole number from %ld to %ld",
                            name, text, min, max);
    *value = number;
    return DT_SUCCESS;
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
            "the SPANK plugin speaks environment version %ld, this libdt "
            "speaks %d: install both from the same slurm-dt",
            version, DT_ENV_VERSION_NOW);
    return DT_SUCCESS;
}
