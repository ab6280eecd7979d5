/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nics.h - NICs by name, and their names for UCX and NCCL. Pure. */
#ifndef DT_SPANK_NICS_H
#define DT_SPANK_NICS_H

#include <stddef.h>

#include "dt_topo.h"

/* bytes of a list of all NICs with their ports, with its NUL */
#define DT_NICS_TEXT (DT_TOPO_MAX_NICS * 48)

/* The NIC with that name, interface or bus id; -1: none. */
int dt_nics_find(const dt_topo_t *topo, const char *name);

/* "mlx5_0,mlx5_1"; "" for none. */
void dt_nics_names(const dt_topo_t *topo, const uint8_t *nic, size_t n,
                   char text[DT_NICS_TEXT]);

/* Those that have a verbs device, with their ports: "mlx5_0:1,mlx5_1:1". */
void dt_nics_verbs(const dt_topo_t *topo, const uint8_t *nic, size_t n,
                   char text[DT_NICS_TEXT]);

#endif
