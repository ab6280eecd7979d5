/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pci.c - path classes and switches from trees of PCI bridges */
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "topo/sources/pci_tree.h"

/* A machine with this many of each; every device needs a bridge. */
static dt_topo_t *machine(size_t ngpus, size_t nnics)
{
    dt_topo_t *topo = dt_topo_create();
    for (size_t i = 0; i < ngpus; i++)
        dt_topo_add_gpu(topo, NULL);
    for (size_t i = 0; i < nnics; i++)
        dt_topo_add_nic(topo, NULL);
    return topo;
}

static int add(struct dt_pci_tree *tree, const char *name, int parent)
{
    return dt_pci_add(tree, name, parent, parent < 0, parent < 0 ? 0 : -1,
                      NULL);
}

/* Root ports 0 and 1; below port 0 a switch with two ports, one of which
 * leads to a second switch. */
static void classes(struct dt_pci_tree *tree)
{
    tree->n = 0;
    int host = add(tree, "0000:00", -1);
    int port0 = add(tree, "0000:00:01.0", host);
    int port1 = add(tree, "0000:00:02.0", host);
    int top = add(tree, "0000:01:00.0", port0);
    int left = add(tree, "0000:02:00.0", top);
    int right = add(tree, "0000:02:01.0", top);
    int inner = add(tree, "0000:05:00.0", right);
    int far = add(tree, "0000:06:00.0", inner);
    int other = add(tree, "0001:00", -1);
    /* GPUs left, left, far, far, port1; NICs right, other, unknown */
    int bridge[] = {left, left, far, inner, port1, right, other, -1};
    dt_topo_t *topo = machine(5, 3);
    ok(dt_pci_apply(tree, bridge, topo, NULL) == DT_SUCCESS, "applied");
    ok(topo->pci[0][1] == DT_PATH_PIX, "functions below one port: PIX");
    ok(topo->pci[0][5] == DT_PATH_PIX, "two ports of a switch: PIX");
    ok(topo->pci[2][3] == DT_PATH_PIX, "a port and the switch itself: PIX");
    ok(topo->pci[0][2] == DT_PATH_PXB, "a switch behind a switch: PXB");
    ok(topo->pci[5][2] == DT_PATH_PXB, "the same from a port above: PXB");
    ok(topo->pci[0][4] == DT_PATH_PHB, "two root ports: PHB");
    ok(topo->pci[0][6] == DT_PATH_UNKNOWN, "two host bridges: left open");
    ok(topo->pci[0][7] == DT_PATH_UNKNOWN, "no bridge: left open");
    bool symmetric = true;
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++)
            symmetric &= topo->pci[a][b] == topo->pci[b][a];
    ok(symmetric, "symmetric");

    const char *want[] = {"0000:00",      "0000:01:00.0", "0000:02:00.0",
                          "0000:02:01.0", "0000:05:00.0", "0001:00"};
    const int parent[] = {-1, 0, 1, 1, 3, -1};
    bool good = topo->nswitches == 6;
    for (int i = 0; good && i < 6; i++)
        good = strcmp(topo->switches[i].name, want[i]) == 0 &&
               topo->switches[i].parent == parent[i];
    ok(good, "kept: where devices part, and the host bridges");
    ok(topo->switches[0].numa == 0 && topo->switches[1].numa == -1,
       "where they are is kept too");
    ok(topo->gpu[0].under == 2 && topo->gpu[2].under == 4 &&
           topo->gpu[4].under == 0 && topo->nic[0].under == 3,
       "devices hang under the nearest that is kept");
    ok(topo->nic[1].under == 5 && topo->nic[2].under == -1,
       "alone below a host bridge, and below none");
    dt_topo_destroy(topo);
}

static void lone_root(struct dt_pci_tree *tree)
{
    tree->n = 0;
    int root = dt_pci_add(tree, "0000:0c:00.0", -1, false, -1, NULL);
    int bridge[] = {root, root};
    dt_topo_t *topo = machine(1, 1);
    ok(dt_pci_apply(tree, bridge, topo, NULL) == DT_SUCCESS &&
           topo->pci[0][1] == DT_PATH_PIX,
       "a root that is no host bridge is a switch");
    dt_topo_destroy(topo);
}

static void bad_input(struct dt_pci_tree *tree)
{
    struct dt_error err;
    tree->n = 0;
    ok(add(tree, "0000:00", -1) == 0, "the first bridge");
    ok(dt_pci_add(tree, "0000:00", 0, false, -1, &err) < 0 &&
           strstr(err.text, "0000:00 is there twice"),
       "the same name again: %s", err.text);
    ok(dt_pci_add(tree, "0000:01:00.0", 7, false, -1, &err) < 0,
       "an unknown parent: %s", err.text);
    dt_topo_t *topo = machine(1, 0);
    ok(dt_pci_apply(tree, (int[]){1}, topo, &err) == DT_ERR_CORRUPT,
       "a device below an unknown bridge: %s", err.text);
    dt_topo_destroy(topo);
    int last = 0;
    for (int i = 1; i <= DT_PCI_MAX_BRIDGES && last >= 0; i++) {
        char name[32];
        snprintf(name, sizeof(name), "bridge%d", i);
        last = dt_pci_add(tree, name, last, false, -1, &err);
    }
    ok(last < 0 && tree->n == DT_PCI_MAX_BRIDGES, "too many: %s", err.text);
    topo = machine(2, 0);
    int end = DT_PCI_MAX_BRIDGES - 1;
    ok(dt_pci_apply(tree, (int[]){end, end}, topo, NULL) == DT_SUCCESS &&
           topo->nswitches == 2,
       "a chain of that many is two");
    dt_topo_destroy(topo);
}

int main(void)
{
    struct dt_pci_tree *tree = calloc(1, sizeof(*tree));
    if (!tree)
        return 1;
    classes(tree);
    lone_root(tree);
    bad_input(tree);
    free(tree);
    return tap_done();
}
