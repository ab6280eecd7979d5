/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pci_tree.h - a tree of PCI bridges as hwloc and NCCL record it, boiled down
 * to path classes and the switches worth drawing. Pure. */
#ifndef DT_TOPO_PCI_TREE_H
#define DT_TOPO_PCI_TREE_H

#include "topo/model/model.h"

#define DT_PCI_MAX_BRIDGES 2048

struct dt_pci_bridge {
    char name[32]; /* bus id; unique */
    int parent;    /* index, -1: a root, below a CPU or NUMA node */
    bool host;     /* a host bridge */
    int numa;      /* index into topo->numa, -1 unknown */
};

struct dt_pci_tree {
    bool whole; /* each bridge is a whole switch, not one port of it */
    size_t n;
    struct dt_pci_bridge bridge[DT_PCI_MAX_BRIDGES];
};

/* Append a bridge whose parent has been added before. Returns its index, or -1
 * with err set. */
int dt_pci_add(struct dt_pci_tree *tree, const char *name, int parent,
               bool host, int numa, struct dt_error *err);

/* Fill topo->pci between all devices, topo->switches and the under fields.
 * bridge[i] is the bridge above device i (GPUs, then NICs), -1 unknown. For
 * the nearest common bridge c of two devices:
 *   c is a host bridge                          PHB
 *   both at most one bridge below c             PIX (the two ports of a switch)
 *   in a tree of whole switches: both below c   PIX
 *   else                                        PXB
 * and with none: left UNKNOWN, for dt_topo_normalize(). The switches kept are
 * the bridges where devices part; chains between them are left out. */
dt_result_t dt_pci_apply(const struct dt_pci_tree *tree, const int *bridge,
                         dt_topo_t *topo, struct dt_error *err);

#endif
