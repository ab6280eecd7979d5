/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* load.c - a topology from an open file. */
#include "topo.h"

dt_result_t load_fd(int fd, dt_topo_t **topo, struct dt_error *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return dt_topo_load(path, topo, err);
}
