/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* layout.c - the positions of everything in the picture.
 *
 * Devices stand in columns under their switch: a GPU at the foot, NICs above
 * it; all GPUs of the node are on one line. Widths are added up from the
 * columns, and then places are given from the left. */
#include "layout.h"

#include <string.h>

enum { NUMA_WIDTH = 2 * COLUMN, EMPTY_WIDTH = 180 };

/* The devices directly under one item. */
struct group {
    int ngpus, nnics, columns;
};

bool layout_merged(const dt_topo_t *topo, int gpu)
{
    return gpu > 0 && topo->gpu[gpu].part >= 0 && topo->gpu[gpu].bus[0] &&
           !strcmp(topo->gpu[gpu].bus, topo->gpu[gpu - 1].bus);
}

static struct group count_group(const struct layout *layout, int parent)
{
    struct group group = {0, 0, 0};
    const struct outline *outline = &layout->outline;
    for (int i = outline_child(outline, parent, -1); i >= 0;
         i = outline_child(outline, parent, i)) {
        const struct outline_item *item = &outline->item[i];
        group.ngpus += item->kind == OUTLINE_GPU &&
                       !layout_merged(layout->topo, item->index);
        group.nnics += item->kind == OUTLINE_NIC;
    }
    return group;
}

static struct group measure_group(const struct layout *layout, int parent)
{
    struct group group = count_group(layout, parent);
    int rows = layout->nic_rows;
    group.columns = rows ? (group.nnics + rows - 1) / rows : 0;
    if (group.columns < group.ngpus)
        group.columns = group.ngpus;
    return group;
}

/* The highest column of NICs above one GPU; other NICs are stacked as high. */
static void measure_rows(struct layout *layout)
{
    layout->nic_rows = layout->topo->nnics > 0;
    for (int i = OUTLINE_MACHINE; i < layout->outline.n; i++) {
        struct group group = count_group(layout, i);
        int rows =
            group.ngpus ? (group.nnics + group.ngpus - 1) / group.ngpus : 0;
        if (rows > layout->nic_rows)
            layout->nic_rows = rows < NIC_ROWS ? rows : NIC_ROWS;
    }
}

static int depth_of(const struct layout *layout, int item)
{
    const struct outline_item *all = layout->outline.item;
    int depth = 0;
    for (; item >= 0 && all[item].kind == OUTLINE_SWITCH;
         item = all[item].parent)
        depth++;
    return depth;
}

/* The width that the content of an item needs. */
static int measure(const struct layout *layout, int parent)
{
    const struct outline *outline = &layout->outline;
    int width = measure_group(layout, parent).columns * COLUMN;
    for (int i = outline_child(outline, parent, -1); i >= 0;
         i = outline_child(outline, parent, i))
        if (outline->item[i].kind <= OUTLINE_SWITCH)
            width += measure(layout, i);
    if (parent == OUTLINE_MACHINE)
        return width;
    enum outline_kind kind = outline->item[parent].kind;
    if (kind == OUTLINE_SWITCH)
        return width;
    int least = !width ? EMPTY_WIDTH : kind == OUTLINE_PACKAGE ? 0 : NUMA_WIDTH;
    return (width < least ? least : width) + 2 * PAD;
}

/* ---- places ---- */

static int devices_top(const struct layout *layout)
{
    return TITLE + PACKAGE_HEAD + NUMA_HEAD + layout->depth * BAR_PITCH;
}

static int gpus_top(const struct layout *layout)
{
    return devices_top(layout) + layout->nic_rows * NIC_PITCH + GPU_GAP;
}

static int devices_end(const struct layout *layout)
{
    return layout->topo->ngpus ? gpus_top(layout) + GPU_HEIGHT
                               : gpus_top(layout);
}

static void place_group(struct layout *layout, int parent, int x)
{
    const struct outline *outline = &layout->outline;
    struct group group = measure_group(layout, parent);
    int gpu = 0, nic = 0, row = 0, last = -1;
    for (int i = outline_child(outline, parent, -1); i >= 0;
         i = outline_child(outline, parent, i)) {
        const struct outline_item *item = &outline->item[i];
        if (item->kind == OUTLINE_GPU) {
            if (layout_merged(layout->topo, item->index))
                continue;
            int column = gpu++ * group.columns / group.ngpus;
            layout->box[i] = (struct box){x + column * COLUMN, gpus_top(layout),
                                          GPU_WIDTH, GPU_HEIGHT};
        } else if (item->kind == OUTLINE_NIC) {
            int column = nic++ * group.columns / group.nnics;
            row = column == last ? row + 1 : 0;
            last = column;
            layout->box[i] = (struct box){x + column * COLUMN + NIC_INDENT,
                                          devices_top(layout) + row * NIC_PITCH,
                                          GPU_WIDTH - NIC_INDENT, NIC_HEIGHT};
        }
    }
}

static void place(struct layout *layout, int item, int x);

/* Place an item from x on; returns its right end. */
static int place_children(struct layout *layout, int parent, int x)
{
    const struct outline *outline = &layout->outline;
    for (int i = outline_child(outline, parent, -1); i >= 0;
         i = outline_child(outline, parent, i))
        if (outline->item[i].kind <= OUTLINE_SWITCH) {
            place(layout, i, x);
            x += measure(layout, i);
        }
    place_group(layout, parent, parent == OUTLINE_MACHINE ? x + PAD : x);
    return x;
}

/* A panel ends a gap before the next begins, a bar where its last box does. */
static void place(struct layout *layout, int item, int x)
{
    struct box *box = &layout->box[item];
    int end = devices_end(layout);
    *box = (struct box){.x = x, .w = measure(layout, item)};
    switch (layout->outline.item[item].kind) {
    case OUTLINE_PACKAGE:
        box->y = TITLE;
        box->h = end + 2 * PAD - box->y;
        box->w -= PAD / 2;
        x += PAD;
        break;
    case OUTLINE_NUMA:
        box->y = TITLE + PACKAGE_HEAD;
        box->h = end + PAD - box->y;
        box->w -= PAD / 2;
        x += PAD + 2;
        break;
    default:
        box->y = TITLE + PACKAGE_HEAD + NUMA_HEAD +
                 (depth_of(layout, item) - 1) * BAR_PITCH;
        box->h = BAR;
        box->w -= COLUMN - GPU_WIDTH;
        break;
    }
    place_children(layout, item, x);
}

void layout_make(struct layout *layout, const dt_topo_t *topo)
{
    memset(layout, 0, sizeof(*layout));
    layout->topo = topo;
    outline_make(&layout->outline, topo);
    measure_rows(layout);
    for (int i = 0; i < layout->outline.n; i++) {
        int depth = depth_of(layout, i);
        if (depth > layout->depth)
            layout->depth = depth;
    }
    int strays = place_children(layout, OUTLINE_MACHINE, MARGIN);
    layout->width = measure(layout, OUTLINE_MACHINE) + 2 * MARGIN;
    layout->strays = strays + MARGIN < layout->width;
    if (layout->strays)
        layout->width += PAD;
    layout->panels_end = devices_end(layout) + 2 * PAD;
    layout->stray = (struct box){.x = strays,
                                 .y = TITLE,
                                 .w = layout->width - MARGIN - strays,
                                 .h = layout->panels_end - TITLE};
}
