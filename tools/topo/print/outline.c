/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* outline.c - what is drawn inside what: packages, NUMA nodes, switches,
 * devices. */
#include <string.h>

#include "outline.h"

/* Which item stands for a package, a NUMA node, a switch; -1 none. */
struct places {
    int package[DT_TOPO_MAX_PACKAGES];
    int numa[DT_TOPO_MAX_NUMAS];
    int bridge[DT_TOPO_MAX_SWITCHES];
};

static int add(struct outline *outline, enum outline_kind kind, int index,
               int parent)
{
    outline->item[outline->n] =
        (struct outline_item){.kind = kind, .index = index, .parent = parent};
    return outline->n++;
}

static void find_packages(const dt_topo_t *topo,
                          bool there[DT_TOPO_MAX_PACKAGES + 1])
{
    /* there[0] stands for "unknown" */
    for (uint32_t i = 0; i < topo->nnumas; i++)
        there[topo->numa[i].package + 1] |= topo->numa[i].gpu < 0;
    for (uint32_t i = 0; i < topo->ncpus; i++)
        there[topo->cpu[i].package + 1] |= topo->cpu[i].present;
    for (uint32_t i = 0; i < topo->ngpus; i++)
        there[topo->gpu[i].package + 1] = true;
    for (uint32_t i = 0; i < topo->nnics; i++)
        there[topo->nic[i].package + 1] = true;
}

/* The item of a place as far as it is known. */
static int inside(const struct places *places, int numa, int package)
{
    if (numa >= 0 && places->numa[numa] >= 0)
        return places->numa[numa];
    return package >= 0 ? places->package[package] : OUTLINE_MACHINE;
}

static void use(const dt_topo_t *topo, int bridge, int numa, int package,
                int place[][2])
{
    for (; bridge >= 0 && place[bridge][0] == -2;
         bridge = topo->switches[bridge].parent) {
        place[bridge][0] = numa;
        place[bridge][1] = package;
    }
}

/* A switch has its own locality, else that of the first device under it. */
static void add_switches(struct outline *outline, const dt_topo_t *topo,
                         struct places *places)
{
    int place[DT_TOPO_MAX_SWITCHES][2];
    for (uint32_t i = 0; i < topo->nswitches; i++) {
        place[i][0] = -2; /* not in use */
        places->bridge[i] = -1;
    }
    for (uint32_t i = 0; i < topo->ngpus; i++)
        use(topo, topo->gpu[i].under, topo->gpu[i].numa, topo->gpu[i].package,
            place);
    for (uint32_t i = 0; i < topo->nnics; i++)
        use(topo, topo->nic[i].under, topo->nic[i].numa, topo->nic[i].package,
            place);
    for (uint32_t i = 0; i < topo->nswitches; i++)
        if (place[i][0] != -2)
            places->bridge[i] = add(outline, OUTLINE_SWITCH, (int)i, -1);
    for (uint32_t i = 0; i < topo->nswitches; i++) {
        const dt_topo_switch_t *bridge = &topo->switches[i];
        if (places->bridge[i] >= 0)
            outline->item[places->bridge[i]].parent =
                bridge->parent >= 0 ? places->bridge[bridge->parent]
                : bridge->numa >= 0 ? inside(places, bridge->numa,
                                             topo->numa[bridge->numa].package)
                                    : inside(places, place[i][0], place[i][1]);
    }
}

void outline_make(struct outline *outline, const dt_topo_t *topo)
{
    struct places places;
    bool there[DT_TOPO_MAX_PACKAGES + 1] = {false};
    outline->n = 0;
    memset(&places, -1, sizeof(places));
    find_packages(topo, there);
    for (int i = 0; i < DT_TOPO_MAX_PACKAGES; i++)
        if (there[i + 1])
            places.package[i] =
                add(outline, OUTLINE_PACKAGE, i, OUTLINE_MACHINE);
    for (uint32_t i = 0; i < topo->nnumas; i++)
        if (topo->numa[i].gpu < 0)
            places.numa[i] = add(outline, OUTLINE_NUMA, (int)i,
                                 inside(&places, -1, topo->numa[i].package));
    add_switches(outline, topo, &places);
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        const dt_topo_gpu_t *gpu = &topo->gpu[i];
        add(outline, OUTLINE_GPU, (int)i,
            gpu->under >= 0 ? places.bridge[gpu->under]
                            : inside(&places, gpu->numa, gpu->package));
    }
    for (uint32_t i = 0; i < topo->nnics; i++) {
        const dt_topo_nic_t *nic = &topo->nic[i];
        add(outline, OUTLINE_NIC, (int)i,
            nic->under >= 0 ? places.bridge[nic->under]
                            : inside(&places, nic->numa, nic->package));
    }
}

int outline_child(const struct outline *outline, int parent, int after)
{
    for (int i = after + 1; i < outline->n; i++)
        if (outline->item[i].parent == parent)
            return i;
    return -1;
}

int outline_device(const struct outline *outline, const dt_topo_t *topo,
                   int item)
{
    const struct outline_item *at = &outline->item[item];
    return at->kind == OUTLINE_GPU   ? at->index
           : at->kind == OUTLINE_NIC ? (int)topo->ngpus + at->index
                                     : -1;
}

/* The child of ancestor that item is, or is in; -1: neither. */
static int branch(const struct outline *outline, int item, int ancestor)
{
    while (item >= 0 && outline->item[item].parent != ancestor)
        item = outline->item[item].parent;
    return item;
}

bool outline_is_host(const struct outline *outline, const dt_topo_t *topo,
                     int item)
{
    if (topo->switches[outline->item[item].index].parent >= 0)
        return false;
    for (int i = item + 1; i < outline->n; i++) {
        int a = outline_device(outline, topo, i);
        int mine = a < 0 ? -1 : branch(outline, i, item);
        for (int j = i + 1; mine >= 0 && j < outline->n; j++) {
            int b = outline_device(outline, topo, j);
            int other = b < 0 ? -1 : branch(outline, j, item);
            if (other >= 0 && other != mine && topo->pci[a][b] <= DT_PATH_PXB)
                return false;
        }
    }
    return true;
}
