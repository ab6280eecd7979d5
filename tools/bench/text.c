/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* text.c - errors of libdt, and numbers with their units. */
#include "bench.h"

dt_result_t fail_in_libdt(struct dt_error *err, dt_result_t result)
{
    const char *text = dt_last_error(), *name = dt_strerror(result);
    return *text ? dt_error_set(err, result, "%s: %s", name, text)
                 : dt_error_set(err, result, "%s", name);
}

char *size_text(char text[32], size_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, "%zu %s", bytes, units[unit]);
    return text;
}

char *time_text(char text[32], double us)
{
    if (us < 1000)
        snprintf(text, 32, "%.*f us", us < 10 ? 2 : us < 100 ? 1 : 0, us);
    else if (us < 1e6)
        snprintf(text, 32, "%.*f ms", us < 1e5 ? 1 : 0, us / 1e3);
    else
        snprintf(text, 32, "%.1f s", us / 1e6);
    return text;
}

char *rate_text(char text[32], double gbs)
{
    if (gbs >= 0.01)
        snprintf(text, 32, "%.*f GB/s", gbs < 10 ? 2 : gbs < 100 ? 1 : 0, gbs);
    else
        snprintf(text, 32, "%.3g MB/s", gbs * 1e3);
    return text;
}
