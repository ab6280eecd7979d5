/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sources.h - what a topology is read from. Each reader of a format takes the
 * whole file as data[0 .. len-1], followed by a NUL that len does not count
 * (there may be other NULs in it), and gives a finished topology, owned by the
 * caller. CORRUPT: malformed, with the line where it is known; UNSUPPORTED. The
 * input may hold anything. */
#ifndef DT_TOPO_SOURCES_H
#define DT_TOPO_SOURCES_H

#include "topo/model/model.h"

#define DT_TOPO_MAX_FILE  (16 << 20) /* bytes */
#define DT_TOPO_MAX_DEPTH 64         /* of nested XML elements */

dt_result_t dt_topo_read_hwloc(const char *data, size_t len, dt_topo_t **topo,
                               struct dt_error *err);
dt_result_t dt_topo_read_nccl(const char *data, size_t len, dt_topo_t **topo,
                              struct dt_error *err);
dt_result_t dt_topo_read_matrix(const char *data, size_t len, dt_topo_t **topo,
                                struct dt_error *err);
dt_result_t dt_topo_read_gres(const char *data, size_t len, dt_topo_t **topo,
                              struct dt_error *err);

/* Recognise data by its content and call one of the above. */
dt_result_t dt_topo_read(const char *data, size_t len, dt_topo_t **topo,
                         struct dt_error *err);

/* This node by hwloc alone: NUMA nodes, CPUs, PCI devices. */
dt_result_t dt_topo_read_live(dt_topo_t **topo, struct dt_error *err);

/* Ask NVML, if libnvidia-ml.so.1 is installed, about the GPUs of topo, matched
 * by bus id, and add what it knows: names, UUIDs, device files, MIG
 * instances (which replace their GPU), NVLinks, lost GPUs. After an
 * error topo is as it was. NOT_FOUND: no library; SYSTEM: NVML failed;
 * UNSUPPORTED: more GPUs than a topology holds; NO_MEMORY; CORRUPT. */
dt_result_t dt_topo_ask_nvml(dt_topo_t *topo, struct dt_error *err);

#endif
