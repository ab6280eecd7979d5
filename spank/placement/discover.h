/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* discover.h - the node's topology as text, from dt-topo: a driver may hang or
 * crash that process, but not slurmstepd. */
#ifndef DT_SPANK_DISCOVER_H
#define DT_SPANK_DISCOVER_H

#include "helper.h"

#define DT_DISCOVER_LIMIT_MS 10000
#define DT_DISCOVER_MAX_TEXT (1 << 20) /* bytes, without the NUL */

struct dt_discover {
    const char *program, *node;
    const char *conf; /* NULL: the program's own choice */
    int limit_ms;
    /* If this process is root's, the program's group is nogroup, so that other
     * processes of the user cannot trace it; the user's groups are its
     * supplementary ones. */
    struct dt_helper_user user;
};

/* Run `program --cached --node NODE [--conf CONF]`. *text is its output and a
 * NUL; the caller frees it. On success err has the first line of its standard
 * error, or "". Blocks up to limit_ms, then kills it. NOT_FOUND: it cannot be
 * run. TIMED_OUT. SYSTEM: it failed, with the first line of its standard error;
 * or its output is empty, or longer than DT_DISCOVER_MAX_TEXT. */
dt_result_t dt_discover(const struct dt_discover *how, char **text,
                        size_t *size, struct dt_error *err);

#endif
