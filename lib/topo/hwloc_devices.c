/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc_devices.c - GPUs, NICs and the PCI bridges above them, from hwloc's
 * objects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/hwloc_xml.h"
#include "topo/pci.h"

#define PCI_NVIDIA 0x10de
#define PCI_AMD    0x1002
#define PCI_INTEL  0x8086
#define PCI_AMAZON 0x1d0f
#define PCI_HPE    0x17db /* Cray, */
#define CASSINI    0x0501 /* Slingshot */

#define CLASS_INFINIBAND  0x0207
#define CLASS_VGA         0x0300
#define CLASS_3D          0x0302
#define CLASS_DISPLAY     0x0380
#define CLASS_ACCELERATOR 0x1200

typedef struct dt_hwloc_object object_t;

struct reader {
    struct dt_hwloc_tree *tree;
    dt_topo_t *topo;
    struct dt_pci_tree *pci;
    int gpu_bridge[DT_TOPO_MAX_GPUS], nic_bridge[DT_TOPO_MAX_NICS];
};

/* The next OS device of PCI device i after object last, -1 if there is none. */
static int next_osdev(const struct dt_hwloc_tree *tree, int i, int last)
{
    for (int next = last + 1; dt_hwloc_within(tree, next, i); next++)
        if (tree->object[next].type == DT_HWLOC_OSDEV)
            return next;
    return -1;
}

/* Two devices of one name would be taken for each other. */
static dt_result_t check_bus(const struct reader *reader, int i,
                             struct dt_error *err)
{
    const object_t *object = &reader->tree->object[i];
    const dt_topo_t *topo = reader->topo;
    bool twice = false;
    for (uint32_t g = 0; g < topo->ngpus; g++)
        twice |= strcmp(topo->gpu[g].bus, object->bus) == 0;
    for (uint32_t n = 0; n < topo->nnics; n++)
        twice |= strcmp(topo->nic[n].bus, object->bus) == 0;
    if (!twice && *object->bus)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "line %zu: a PCI device without a bus id of its own",
                        object->line);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- where a device is ---- */

struct locality {
    int16_t numa, package;
    dt_cpuset_t cpus;
};

static struct locality locate(const struct reader *reader, int i)
{
    struct locality at = {.numa = -1, .package = -1};
    const struct dt_hwloc_tree *tree = reader->tree;
    while (i >= 0 && tree->object[i].type >= DT_HWLOC_BRIDGE)
        i = tree->object[i].parent;
    if (i < 0)
        return at;
    dt_hwloc_cpus(tree, i, &at.cpus);
    int package = dt_hwloc_above(tree, i, DT_HWLOC_PACKAGE);
    if (package >= 0)
        at.package = (int16_t)tree->object[package].index;
    for (uint32_t n = 0; n < reader->topo->nnumas && at.numa < 0; n++) {
        dt_cpuset_t common;
        dt_cpuset_and(&common, &at.cpus, &reader->topo->numa[n].cpus);
        if (dt_cpuset_count(&common) > 0 && dt_cpuset_equal(&common, &at.cpus))
            at.numa = (int16_t)n;
    }
    /* near to all of several NUMA nodes means that nobody knows */
    if (at.numa < 0 && tree->object[i].type == DT_HWLOC_MACHINE)
        at.cpus = (dt_cpuset_t){0};
    return at;
}

/* The index of bridge i in reader->pci, added with those above it if need be;
 * -1 if i is none. */
static dt_result_t add_bridge(struct reader *reader, int i, int *index,
                              struct dt_error *err)
{
    *index = -1;
    object_t *object = i < 0 ? NULL : &reader->tree->object[i];
    if (!object || object->type != DT_HWLOC_BRIDGE)
        return DT_SUCCESS;
    if (object->index < 0) {
        int parent;
        dt_result_t rc = add_bridge(reader, object->parent, &parent, err);
        if (rc != DT_SUCCESS)
            return rc;
        char name[32];
        if (*object->bus)
            snprintf(name, sizeof(name), "%s", object->bus);
        else
            snprintf(name, sizeof(name), "bridge%d", i);
        object->index = dt_pci_add(reader->pci, name, parent, object->host,
                                   locate(reader, i).numa, err);
        if (object->index < 0)
            return DT_ERR_CORRUPT;
    }
    *index = object->index;
    return DT_SUCCESS;
}

/* ---- GPUs ---- */

/* What the driver of AMD calls a GPU, or what has a switch of its own: the
 * display of an APU has neither. */
static bool amd_computes(const struct dt_hwloc_tree *tree, int i)
{
    for (int dev = i; (dev = next_osdev(tree, i, dev)) >= 0;)
        if (begins(tree->object[dev].name, "rsmi") ||
            begins(tree->object[dev].name, "opencl"))
            return true;
    int above = tree->object[i].parent;
    return above >= 0 && tree->object[above].pci_vendor == PCI_AMD;
}

static dt_vendor_t gpu_vendor(const struct dt_hwloc_tree *tree, int i)
{
    const object_t *object = &tree->object[i];
    bool vga = object->pci_class == CLASS_VGA;
    if (object->type != DT_HWLOC_PCI ||
        (!vga && object->pci_class != CLASS_3D &&
         object->pci_class != CLASS_DISPLAY &&
         object->pci_class != CLASS_ACCELERATOR))
        return DT_VENDOR_UNKNOWN;
    switch (object->pci_vendor) {
    case PCI_NVIDIA:
        return DT_VENDOR_NVIDIA;
    case PCI_AMD:
        return !vga || amd_computes(tree, i) ? DT_VENDOR_AMD
                                             : DT_VENDOR_UNKNOWN;
    case PCI_INTEL: /* bus 0 is inside the processor */
        return !vga && !begins(object->bus, "0000:00:") ? DT_VENDOR_INTEL
                                                        : DT_VENDOR_UNKNOWN;
    default: /* a display of the board's management controller */
        return DT_VENDOR_UNKNOWN;
    }
}

/* AMD's are 64 bits in hexadecimal, and "GPU-" before 16 digits to its
 * runtime; zero is none. */
static void set_uuid(dt_topo_gpu_t *gpu, const char *text)
{
    if (gpu->vendor != DT_VENDOR_AMD) {
        dt_topo_text(gpu->uuid, sizeof(gpu->uuid), text);
        return;
    }
    char *end;
    unsigned long long id = strtoull(text, &end, 16);
    if (id != 0 && *end == '\0')
        snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%016llx", id);
}

/* Let the GPU know what one of its OS devices says, and the other way. */
static void describe(dt_topo_gpu_t *gpu, int index, object_t *osdev)
{
    osdev->index = index;
    if (!*gpu->name)
        dt_topo_text(gpu->name, sizeof(gpu->name), osdev->model);
    if (!*gpu->uuid && *osdev->uuid)
        set_uuid(gpu, osdev->uuid);
    if (gpu->memory == 0)
        gpu->memory = osdev->memory;
}

static dt_topo_gpu_t *add_gpu(struct reader *reader, int i, dt_vendor_t vendor,
                              int bridge, struct dt_error *err)
{
    dt_topo_gpu_t *gpu = dt_topo_add_gpu(reader->topo, err);
    if (!gpu)
        return NULL;
    struct locality at = locate(reader, i);
    memcpy(gpu->bus, reader->tree->object[i].bus, sizeof(gpu->bus));
    gpu->vendor = vendor;
    gpu->numa = at.numa;
    gpu->package = at.package;
    gpu->cpus = at.cpus;
    reader->gpu_bridge[reader->topo->ngpus - 1] = bridge;
    return gpu;
}

static int osdev_number(const object_t *object)
{
    const char *digits = object->name + strcspn(object->name, "0123456789");
    return (int)strtol(digits, NULL, 10);
}

/* The devices of AMD's driver under one PCI device, by number; there are
 * several when it is partitioned. */
static size_t partitions(const struct dt_hwloc_tree *tree, int i,
                         int osdev[DT_TOPO_MAX_GPUS])
{
    size_t n = 0;
    for (int dev = i; (dev = next_osdev(tree, i, dev)) >= 0;) {
        const object_t *object = &tree->object[dev];
        if (!begins(object->name, "rsmi") || n == DT_TOPO_MAX_GPUS)
            continue;
        size_t at = n++;
        for (; at > 0 && osdev_number(&tree->object[osdev[at - 1]]) >
                             osdev_number(object);
             at--)
            osdev[at] = osdev[at - 1];
        osdev[at] = dev;
    }
    return n;
}

static dt_result_t add_gpus(struct reader *reader, int i, dt_vendor_t vendor,
                            struct dt_error *err)
{
    struct dt_hwloc_tree *tree = reader->tree;
    object_t *object = &tree->object[i];
    dt_topo_t *topo = reader->topo;
    int osdev[DT_TOPO_MAX_GPUS], bridge = -1;
    size_t nparts = partitions(tree, i, osdev);
    dt_result_t rc = check_bus(reader, i, err);
    if (rc == DT_SUCCESS)
        rc = add_bridge(reader, object->parent, &bridge, err);
    if (rc != DT_SUCCESS)
        return rc;
    object->index = (int)topo->ngpus;
    for (size_t part = 0; part < nparts || part == 0; part++) {
        int index = (int)topo->ngpus;
        dt_topo_gpu_t *gpu = add_gpu(reader, i, vendor, bridge, err);
        if (!gpu)
            return DT_ERR_UNSUPPORTED;
        if (nparts > 1) {
            gpu->part = (int16_t)part;
            describe(gpu, index, &tree->object[osdev[part]]);
        } else {
            for (int dev = i; (dev = next_osdev(tree, i, dev)) >= 0;)
                describe(gpu, index, &tree->object[dev]);
        }
        if (!*gpu->name)
            dt_topo_text(gpu->name, sizeof(gpu->name),
                         *object->model ? object->model : object->name);
    }
    return DT_SUCCESS;
}

/* ---- NICs ---- */

static bool is_slingshot(const struct dt_hwloc_tree *tree, int i)
{
    const object_t *object = &tree->object[i];
    if (object->pci_vendor == PCI_HPE && object->pci_device == CASSINI)
        return true;
    for (int dev = i; (dev = next_osdev(tree, i, dev)) >= 0;)
        if (strcmp(tree->object[dev].subtype, "Slingshot") == 0)
            return true;
    return false;
}

static bool is_nic(const struct dt_hwloc_tree *tree, int i)
{
    if (tree->object[i].type != DT_HWLOC_PCI)
        return false;
    if (is_slingshot(tree, i))
        return true;
    for (int dev = i; (dev = next_osdev(tree, i, dev)) >= 0;)
        if (tree->object[dev].osdev == DT_HWLOC_OPENFABRICS)
            return true;
    return false;
}

static dt_nic_type_t nic_type(const object_t *object, const object_t *verbs,
                              const char *net)
{
    if (object->pci_vendor == PCI_AMAZON)
        return DT_NIC_EFA;
    /* only InfiniBand has LIDs; a port that is down may have none */
    if (object->pci_class == CLASS_INFINIBAND || verbs->port_lid != 0 ||
        begins(net, "ib"))
        return DT_NIC_IB;
    return DT_NIC_ROCE;
}

/* The names of one kind, appended with '/' between them. */
static void add_names(dt_topo_nic_t *nic, const struct dt_hwloc_tree *tree,
                      int i, int kind)
{
    for (int dev = i; (dev = next_osdev(tree, i, dev)) >= 0;) {
        const object_t *object = &tree->object[dev];
        size_t used = strlen(nic->names);
        if (object->osdev != kind || !*object->name ||
            used + strlen(object->name) + 2 > sizeof(nic->names))
            continue;
        if (used > 0)
            nic->names[used++] = '/';
        memcpy(nic->names + used, object->name, strlen(object->name) + 1);
        if (kind == DT_HWLOC_NETWORK && !*nic->net)
            dt_topo_text(nic->net, sizeof(nic->net), object->name);
        if (!*nic->name)
            dt_topo_text(nic->name, sizeof(nic->name), object->name);
    }
}

static dt_result_t add_nic(struct reader *reader, int i, struct dt_error *err)
{
    const struct dt_hwloc_tree *tree = reader->tree;
    const object_t *object = &tree->object[i];
    int bridge = -1;
    dt_result_t rc = check_bus(reader, i, err);
    if (rc == DT_SUCCESS)
        rc = add_bridge(reader, object->parent, &bridge, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_topo_nic_t *nic = dt_topo_add_nic(reader->topo, err);
    if (!nic)
        return DT_ERR_UNSUPPORTED;
    struct locality at = locate(reader, i);
    memcpy(nic->bus, object->bus, sizeof(nic->bus));
    nic->numa = at.numa;
    nic->package = at.package;
    reader->nic_bridge[reader->topo->nnics - 1] = bridge;
    add_names(nic, tree, i, DT_HWLOC_OPENFABRICS);
    add_names(nic, tree, i, DT_HWLOC_NETWORK);
    if (!*nic->name)
        dt_topo_text(nic->name, sizeof(nic->name), nic->bus);
    const object_t *verbs = NULL;
    for (int dev = i; !verbs && (dev = next_osdev(tree, i, dev)) >= 0;)
        if (tree->object[dev].osdev == DT_HWLOC_OPENFABRICS)
            verbs = &tree->object[dev];
    nic->type = is_slingshot(tree, i) ? DT_NIC_SLINGSHOT
                                      : nic_type(object, verbs, nic->net);
    if (verbs) { /* without a port nothing gets through */
        nic->port = (int16_t)verbs->port;
        nic->state = verbs->port_state == 4 ? DT_LINK_UP : DT_LINK_DOWN;
    }
    return DT_SUCCESS;
}

dt_result_t dt_hwloc_devices(struct dt_hwloc_tree *tree, dt_topo_t *topo,
                             struct dt_error *err)
{
    struct reader reader = {.tree = tree, .topo = topo};
    reader.pci = calloc(1, sizeof(*reader.pci));
    if (!reader.pci)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc = DT_SUCCESS;
    for (int i = 0; i < (int)tree->n && rc == DT_SUCCESS; i++) {
        dt_vendor_t vendor = gpu_vendor(tree, i);
        if (vendor != DT_VENDOR_UNKNOWN)
            rc = add_gpus(&reader, i, vendor, err);
        else if (is_nic(tree, i))
            rc = add_nic(&reader, i, err);
    }
    int bridge[DT_TOPO_MAX_DEVICES];
    memcpy(bridge, reader.gpu_bridge, topo->ngpus * sizeof(int));
    memcpy(bridge + topo->ngpus, reader.nic_bridge, topo->nnics * sizeof(int));
    if (rc == DT_SUCCESS)
        rc = dt_pci_apply(reader.pci, bridge, topo, err);
    free(reader.pci);
    return rc;
}
