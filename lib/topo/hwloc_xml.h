/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc_xml.h - the objects of an hwloc XML file, version 1 or 2, and what is
 * made of them. It is read here, and not by hwloc, because hwloc trusts what
 * it reads: a damaged file can crash it. */
#ifndef DT_TOPO_HWLOC_XML_H
#define DT_TOPO_HWLOC_XML_H

#include "topo/sources.h"

enum dt_hwloc_type {
    DT_HWLOC_OTHER, /* caches, dies, groups, ... */
    DT_HWLOC_MACHINE,
    DT_HWLOC_PACKAGE,
    DT_HWLOC_NUMA,
    DT_HWLOC_CORE,
    DT_HWLOC_PU,
    DT_HWLOC_BRIDGE, /* this and what follows is I/O */
    DT_HWLOC_PCI,
    DT_HWLOC_OSDEV,
};

enum { /* osdev, as hwloc numbers them */
       DT_HWLOC_NETWORK = 2,
       DT_HWLOC_OPENFABRICS = 3,
};

struct dt_hwloc_object {
    enum dt_hwloc_type type;
    int parent; /* it is earlier; -1: none */
    size_t line;
    uint32_t os_index; /* UINT32_MAX unknown */
    uint64_t gp_index; /* what distances call it; 0 unknown */
    uint64_t memory;   /* bytes; of a GPU's OS device, the GPU's */
    bool has_cpus;     /* its cpuset is not empty */
    bool offline;      /* a PU */
    bool host;         /* a host bridge */
    int osdev;         /* which kind of OS device */
    uint32_t pci_class, pci_vendor, pci_device; /* 0 unknown */
    char bus[24]; /* of a bridge or PCI device; of the GPU whose memory a
                     NUMA node is */
    char name[64], subtype[32], model[64], uuid[96];
    uint32_t port, port_state, port_lid; /* the port in the best state */
    int index; /* of a package or core: its number; of a bridge: in the PCI
                  tree; else into the GPUs of the topology; -1 none */
};

struct dt_hwloc_tree {
    size_t n, room;
    struct dt_hwloc_object *object;
};

/* CORRUPT, with the line; UNSUPPORTED: another version. Free it in any case. */
dt_result_t dt_hwloc_parse(const char *data, size_t len,
                           struct dt_hwloc_tree *tree, struct dt_error *err);
void dt_hwloc_free(struct dt_hwloc_tree *tree);

/* An object is followed by all that is below it: is i, reached by counting up
 * from above, still one of them? */
bool dt_hwloc_within(const struct dt_hwloc_tree *tree, int i, int above);

/* The nearest object of a type from i upward, -1 if there is none. */
int dt_hwloc_above(const struct dt_hwloc_tree *tree, int i,
                   enum dt_hwloc_type type);

/* Online CPUs below object i. */
void dt_hwloc_cpus(const struct dt_hwloc_tree *tree, int i, dt_cpuset_t *cpus);

/* Add GPUs and NICs, where they are, and the PCI paths between them; NUMA
 * nodes and CPUs are in topo already. Sets the index of each object that stands
 * for a GPU. */
dt_result_t dt_hwloc_devices(struct dt_hwloc_tree *tree, dt_topo_t *topo,
                             struct dt_error *err);

/* Fill topo->links from the distances in the file that tree is from, which
 * dt_hwloc_parse() found well-formed, after dt_hwloc_devices(). */
dt_result_t dt_hwloc_links(const char *data, size_t len,
                           const struct dt_hwloc_tree *tree, dt_topo_t *topo,
                           struct dt_error *err);

/* Fill type, state and speed of the NICs from the kernel's class folder
 * (/sys/class/infiniband), where it knows more. */
void dt_hwloc_ask_ports(dt_topo_t *topo, const char *folder);

#endif
