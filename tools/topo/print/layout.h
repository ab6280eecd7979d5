/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* layout.h - the positions of everything in the picture, in pixels. */
#ifndef DT_TOOLS_LAYOUT_H
#define DT_TOOLS_LAYOUT_H

#include "outline.h"

enum {
    MARGIN = 20,
    TITLE = 62, /* above the panels */
    PAD = 12,   /* inside a panel, and between two */
    PACKAGE_HEAD = 30,
    NUMA_HEAD = 48,
    COLUMN = 136, /* from one GPU to the next */
    GPU_WIDTH = 120,
    GPU_HEIGHT = 58,
    GPU_GAP = 18, /* above the GPUs */
    RAIL = 9,     /* from a column's left edge to its PCIe line */
    NIC_INDENT = 18,
    NIC_HEIGHT = 50,
    NIC_PITCH = 60,
    NIC_ROWS = 4, /* at most above each other */
    BAR = 22,     /* the height of a switch */
    BAR_PITCH = 36,
};

struct box {
    int x, y, w, h;
};

/* GPU partitions of one PCI function share a box: that of the first. */
struct layout {
    const dt_topo_t *topo;
    struct outline outline;
    struct box box[OUTLINE_MAX]; /* of each item; w 0: not drawn */
    int width, panels_end;       /* of the picture; y below the panels */
    int nic_rows, depth;         /* the most NICs, switches above each other */
    bool strays;                 /* devices of no known package or NUMA node */
    struct box stray;            /* their panel */
};

void layout_make(struct layout *layout, const dt_topo_t *topo);

/* Does GPU i share the box of the one before it? */
bool layout_merged(const dt_topo_t *topo, int gpu);

#endif
