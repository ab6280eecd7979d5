/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* discover.h - the node's topology as text, from a program of its own: drivers
 * may hang or crash, and slurmstepd must not. */
#ifndef DT_SPANK_DISCOVER_H
#define DT_SPANK_DISCOVER_H

#include "helper.h"

#define DT_DISCOVER_LIMIT_MS 10000
#define DT_DISCOVER_MAX_TEXT (1 << 20) /* bytes, without the NUL */

struct dt_discover {
    const char *program, *node;
    const char *conf; /* NULL: the program's own choice */
    int limit_ms;
    /* If this process is root's, the program's group is nobody's, so that other
     * processes of the user cannot trace it; it has the user's as supplementary
     * ones. */
    struct dt_helper_user user;
};

/* Run `program --cached --node NODE [--conf CONF]` without any descriptor of
 * ours, with an environment and in a process group of its own. *text is what
 * it printed and a NUL, to be freed; then err is not an error but the first
 * line of its standard error, or "". Blocks up to limit_ms, then kills the
 * group. NOT_FOUND: it cannot be run. TIMEOUT. SYSTEM: it failed, with the
 * first line of its standard error; or it printed nothing, or too much. */
dt_result_t dt_discover(const struct dt_discover *how, char **text,
                        size_t *size, struct dt_error *err);

#endif
