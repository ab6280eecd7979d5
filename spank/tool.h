/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tool.h - dt-requeue, which asks and tells slurmctld for the plugin: a process
 * of the user's, so that none of it is in slurmstepd. */
#ifndef DT_SPANK_TOOL_H
#define DT_SPANK_TOOL_H

#include "helper.h"

/* Run it, at most limit_ms. err_fd, if not -1, gets what it has to say; out,
 * if not NULL, its output up to size - 1 bytes. Its exit status, or -1. */
int dt_tool_run(const struct dt_helper *how, int limit_ms, int err_fd,
                char *out, size_t size);

#endif
