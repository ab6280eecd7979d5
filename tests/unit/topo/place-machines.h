/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place-machines.h - machines whose right placement is known. The caller
 * destroys them. */
#ifndef PLACE_MACHINES_H
#define PLACE_MACHINES_H

#include "topo/model/model.h"

/* To be finished:
 *
 * ngpus GPUs spread in order over nnumas NUMA nodes in two packages; cores of
 * two threads, numbered as Linux does: all first threads, then the second. */
dt_topo_t *machine(size_t ngpus, size_t nnumas, size_t ncores);

void add_nic(dt_topo_t *topo, int numa, dt_nic_type_t type);
void path(dt_topo_t *topo, size_t a, size_t b, dt_path_t class);

/* All of from .. to-1 by n links. */
void link_all(dt_topo_t *topo, size_t from, size_t to, uint16_t n);

/* Returns topo. */
dt_topo_t *finish(dt_topo_t *topo);

/* Finished:
 *
 * Eight GPUs on NVSwitch, a NIC next to each, four of each per package. */
dt_topo_t *hgx(void);

/* The hybrid cube mesh of the DGX-1V, as `nvidia-smi topo -m` shows it: NVLink
 * hides which GPUs are under one PCIe switch. */
dt_topo_t *dgx1(void);

/* Sixteen GPUs, all on NVSwitch, two per PCIe switch, in the order given. */
dt_topo_t *dgx2(const uint8_t *order);

/* Four GPUs without NVLink; those under one switch are not neighbours. */
dt_topo_t *pcie(void);

#endif
