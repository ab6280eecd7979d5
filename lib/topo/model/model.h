/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* model.h - building a topology: a source adds what it found, then finishes
 * it. Pure. */
#ifndef DT_TOPO_MODEL_H
#define DT_TOPO_MODEL_H

#include "base/error.h"
#include "dt_topo.h"

#define DT_TOPO_NO_CORE    UINT16_MAX        /* the source does not say */
#define DT_TOPO_MAX_MEMORY (UINT64_MAX / 16) /* bytes; more is a mistake */

/* The next element with every field "unknown", or NULL with err set when the
 * topology is full. All GPUs and NICs come before the first path is set. */
dt_topo_gpu_t *dt_topo_add_gpu(dt_topo_t *topo, struct dt_error *err);
dt_topo_nic_t *dt_topo_add_nic(dt_topo_t *topo, struct dt_error *err);
dt_topo_numa_t *dt_topo_add_numa(dt_topo_t *topo, struct dt_error *err);
dt_topo_switch_t *dt_topo_add_switch(dt_topo_t *topo, struct dt_error *err);

/* The index of the NUMA node with the operating system's number id, or -1. */
int dt_topo_find_numa(const dt_topo_t *topo, uint32_t id);

/* Bus ids in any usual spelling ("00000000:0F:00.0", "0f:00.0", "0:f:0.0")
 * as "0000:0f:00.0"; false and "" if it is none. */
bool dt_topo_bus(const char *text, char bus[24]);

/* Copy into a fixed text field, cut, control characters and quotes replaced by
 * blanks, so that it can be printed in any format. NULL is "". */
void dt_topo_text(char *field, size_t size, const char *text);

/* A link as the kernel and NCCL write its speed and width: "16.0 GT/s PCIe" and
 * "16". Either may be NULL. Unknown where one is not such a text. */
void dt_topo_pcie(dt_topo_pcie_t *link, const char *speed, const char *width);

/* Bring what the sources give into the one form of dt_topo.h:
 * - GPUs in order of bus id and partition, NICs in order of bus id, then name;
 *   without a bus id they stay in order, after those with one;
 * - cpu[]: numa and package from numa[].cpus; the CPUs of GPUs when there is
 *   no NUMA node; core ids renumbered; cores that the source does not know are
 *   inferred: CPUs of one set that are as far apart as two equal ranges of some
 *   set, or half the node, are siblings, otherwise each CPU is a core;
 * - a GPU's and NIC's package from its NUMA node, a GPU's cpus from its NUMA
 *   node and the other way round, where only one is known;
 * - paths still UNKNOWN from the switch tree (same switch PIX, same tree below
 *   a host bridge PXB, same host bridge PHB), then from localities (NODE in
 *   one NUMA node or with equal cpus, else SYS, also where only packages are
 *   known); UNKNOWN only if neither says. Asymmetric paths take the worse,
 *   asymmetric links the fewer;
 * - more memory than DT_TOPO_MAX_MEMORY is unknown.
 * CORRUPT: indices out of range, a tree with a cycle. */
dt_result_t dt_topo_normalize(dt_topo_t *topo, struct dt_error *err);

/* Read our own text format (doc/topology.md) from data[0 .. len-1], which may
 * hold anything. The caller owns *topo. CORRUPT, with the line; UNSUPPORTED:
 * more of something than a topology holds; NO_MEMORY. */
dt_result_t dt_topo_read_text(const char *data, size_t len, dt_topo_t **topo,
                              struct dt_error *err);

#endif
