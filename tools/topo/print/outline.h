/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* outline.h - what is drawn inside what: packages, NUMA nodes, switches,
 * devices. */
#ifndef DT_TOOLS_TOPO_OUTLINE_H
#define DT_TOOLS_TOPO_OUTLINE_H

#include "dt_topo.h"

enum outline_kind {
    OUTLINE_PACKAGE, /* index: its number */
    OUTLINE_NUMA,    /* indices of the topology from here on */
    OUTLINE_SWITCH,
    OUTLINE_GPU,
    OUTLINE_NIC,
};

#define OUTLINE_MACHINE (-1)
#define OUTLINE_MAX                                                            \
    (DT_TOPO_MAX_PACKAGES + DT_TOPO_MAX_NUMAS + DT_TOPO_MAX_SWITCHES +         \
     DT_TOPO_MAX_DEVICES)

struct outline_item {
    enum outline_kind kind;
    int index;
    int parent; /* an item before, or OUTLINE_MACHINE */
};

/* Children are in the order of the items. NUMA nodes that are a GPU's memory
 * and switches without devices are left out. */
struct outline {
    int n;
    struct outline_item item[OUTLINE_MAX];
};

void outline_make(struct outline *outline, const dt_topo_t *topo);

/* The next child of parent after item `after` (-1: the first), or -1. */
int outline_child(const struct outline *outline, int parent, int after);

/* Is this item, an outermost switch, a host bridge? Not if devices that part
 * there have no host bridge between them. */
bool outline_is_host(const struct outline *outline, const dt_topo_t *topo,
                     int item);

/* The device that an item is, as an index of topo->pci; -1 none. */
int outline_device(const struct outline *outline, const dt_topo_t *topo,
                   int item);

#endif
