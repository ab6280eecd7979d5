/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pci_tree.c - path classes and switches from a tree of PCI bridges. */
#include "topo/sources/pci_tree.h"

#include <stdlib.h>
#include <string.h>

int dt_pci_add(struct dt_pci_tree *tree, const char *name, int parent,
               bool host, int numa, struct dt_error *err)
{
    if (tree->n == DT_PCI_MAX_BRIDGES) {
        dt_error_set(err, DT_ERR_UNSUPPORTED,
                     "more than %d PCI bridges in one node",
                     DT_PCI_MAX_BRIDGES);
        return -1;
    }
    if (parent < -1 || parent >= (int)tree->n) {
        dt_error_set(err, DT_ERR_CORRUPT,
                     "PCI bridge %s has a parent that does not exist", name);
        return -1;
    }
    struct dt_pci_bridge bridge = {
        .parent = parent, .host = host, .numa = numa};
    dt_topo_text(bridge.name, sizeof(bridge.name), name);
    for (size_t i = 0; i < tree->n; i++)
        if (strcmp(tree->bridge[i].name, bridge.name) == 0) {
            dt_error_set(err, DT_ERR_CORRUPT, "PCI bridge %s is there twice",
                         bridge.name);
            return -1;
        }
    tree->bridge[tree->n] = bridge;
    return (int)tree->n++;
}

/* The nearest bridge above both, -1 if there is none. */
static int common_bridge(const struct dt_pci_tree *tree, int a, int b)
{
    while (a != b) /* a parent has the lower index */
        if (a > b)
            a = tree->bridge[a].parent;
        else
            b = tree->bridge[b].parent;
    return a;
}

/* Is what hangs under bridge on a port of the switch that common is part of? */
static bool at_port(const struct dt_pci_tree *tree, int bridge, int common)
{
    return bridge == common ||
           (!tree->whole && tree->bridge[bridge].parent == common);
}

static dt_path_t path_class(const struct dt_pci_tree *tree, int common, int a,
                            int b)
{
    if (tree->bridge[common].host)
        return DT_PATH_PHB;
    if (at_port(tree, a, common) && at_port(tree, b, common))
        return DT_PATH_PIX;
    return DT_PATH_PXB;
}

/* The paths; and keep[] for the bridges where devices part, and for the
 * roots, which a drawing begins with. */
static void set_paths(const struct dt_pci_tree *tree, const int *bridge,
                      dt_topo_t *topo, bool *keep)
{
    size_t n = topo->ngpus + topo->nnics;
    for (size_t a = 0; a < n; a++) {
        int root = bridge[a];
        while (root >= 0 && tree->bridge[root].parent >= 0)
            root = tree->bridge[root].parent;
        if (root < 0)
            continue;
        keep[root] = true;
        for (size_t b = 0; b < a; b++) {
            int common = common_bridge(tree, bridge[a], bridge[b]);
            if (common < 0)
                continue;
            keep[common] = true;
            topo->pci[a][b] = topo->pci[b][a] =
                (uint8_t)path_class(tree, common, bridge[a], bridge[b]);
        }
    }
}

static dt_result_t check(const struct dt_pci_tree *tree, const int *bridge,
                         const dt_topo_t *topo, struct dt_error *err)
{
    for (size_t i = 0; i < topo->ngpus + topo->nnics; i++)
        if (bridge[i] < -1 || bridge[i] >= (int)tree->n)
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "device %zu is under a PCI bridge that does "
                                "not exist",
                                i);
    return DT_SUCCESS;
}

dt_result_t dt_pci_apply(const struct dt_pci_tree *tree, const int *bridge,
                         dt_topo_t *topo, struct dt_error *err)
{
    dt_result_t rc = check(tree, bridge, topo, err);
    if (rc != DT_SUCCESS)
        return rc;
    bool keep[DT_PCI_MAX_BRIDGES] = {false};
    set_paths(tree, bridge, topo, keep);
    /* what is kept, and under which of those the others are */
    int16_t kept[DT_PCI_MAX_BRIDGES];
    for (size_t i = 0; i < tree->n; i++) {
        const struct dt_pci_bridge *from = &tree->bridge[i];
        int16_t parent = from->parent < 0 ? -1 : kept[from->parent];
        kept[i] = parent;
        if (!keep[i])
            continue;
        kept[i] = (int16_t)topo->nswitches;
        dt_topo_switch_t *to = dt_topo_add_switch(topo, err);
        if (!to)
            return DT_ERR_UNSUPPORTED;
        memcpy(to->name, from->name, sizeof(to->name));
        to->parent = parent;
        to->numa = (int16_t)from->numa;
    }
    for (size_t i = 0; i < topo->ngpus; i++)
        topo->gpu[i].under = bridge[i] < 0 ? -1 : kept[bridge[i]];
    for (size_t i = 0; i < topo->nnics; i++) {
        int at = bridge[topo->ngpus + i];
        topo->nic[i].under = at < 0 ? -1 : kept[at];
    }
    return DT_SUCCESS;
}
