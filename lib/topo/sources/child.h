/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* child.h - read a topology in a child process, for a library that a damaged
 * file can crash. */
#ifndef DT_TOPO_CHILD_H
#define DT_TOPO_CHILD_H

#include "topo/sources.h"

/* Call read(data, len, ...) in a child, without what it writes to standard
 * error, and give its result. Blocks for at most 10 s. CORRUPT: it crashed or
 * took longer; SYSTEM: no child. */
dt_result_t dt_child_read(dt_result_t (*read)(const char *data, size_t len,
                                              dt_topo_t **topo,
                                              struct dt_error *err),
                          const char *data, size_t len, dt_topo_t **topo,
                          struct dt_error *err);

#endif
