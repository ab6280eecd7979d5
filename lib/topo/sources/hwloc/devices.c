/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* devices.c - GPUs, NICs and the PCI bridges above them, from hwloc's
 * objects. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "topo/sources/hwloc/convert.h"
#include "topo/sources/pci_tree.h"

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

struct reader {
    dt_topo_t *topo;
    struct dt_pci_tree *pci;
    int gpu_bridge[DT_TOPO_MAX_GPUS], nic_bridge[DT_TOPO_MAX_NICS];
};

/* What userdata holds: the index of a bridge in the PCI tree, and that of the
 * GPU which a PCI or OS device stands for. NULL is none. */
static void set_index(hwloc_obj_t object, int index)
{
    object->userdata = (void *)((intptr_t)index + 1);
}

static int index_of(hwloc_obj_t object)
{
    return (int)((intptr_t)object->userdata - 1);
}

int dt_hwloc_gpu(hwloc_obj_t object)
{
    bool device = object->type == HWLOC_OBJ_PCI_DEVICE ||
                  object->type == HWLOC_OBJ_OS_DEVICE;
    return device ? index_of(object) : -1;
}

/* The next OS device of a PCI device, NULL if there is none. */
static hwloc_obj_t next_osdev(hwloc_obj_t pci, hwloc_obj_t last)
{
    hwloc_obj_t next = last ? last->next_sibling : pci->io_first_child;
    while (next && next->type != HWLOC_OBJ_OS_DEVICE)
        next = next->next_sibling;
    return next;
}

static void bus_of(hwloc_obj_t object, char bus[24])
{
    const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;
    snprintf(bus, 24, "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev,
             pci->func);
}

static const char *info(hwloc_obj_t object, const char *name)
{
    const char *value = hwloc_obj_get_info_by_name(object, name);
    return value ? value : "";
}

static bool begins(const char *text, const char *with)
{
    return text && strncmp(text, with, strlen(with)) == 0;
}

/* Two devices with one bus id would be taken for each other. */
static dt_result_t check_bus(const dt_topo_t *topo, hwloc_obj_t object,
                             struct dt_error *err)
{
    char bus[24];
    bus_of(object, bus);
    bool twice = false;
    for (uint32_t g = 0; g < topo->ngpus; g++)
        twice |= strcmp(topo->gpu[g].bus, bus) == 0;
    for (uint32_t n = 0; n < topo->nnics; n++)
        twice |= strcmp(topo->nic[n].bus, bus) == 0;
    return twice ? dt_error_set(err, DT_ERR_CORRUPT,
                                "two PCI devices have the bus id %s", bus)
                 : DT_SUCCESS;
}

/* ---- where a device is ---- */

struct locality {
    int16_t numa, package;
    dt_cpuset_t cpus;
};

static struct locality locate(const struct reader *reader, hwloc_obj_t object)
{
    struct locality at = {.numa = -1, .package = -1};
    while (object && !object->cpuset) /* I/O objects have none */
        object = object->parent;
    if (!object)
        return at;
    dt_hwloc_cpus(reader->topo, object->cpuset, &at.cpus);
    for (hwloc_obj_t up = object; up; up = up->parent)
        if (up->type == HWLOC_OBJ_PACKAGE)
            at.package = (int16_t)up->logical_index;
    for (uint32_t n = 0; n < reader->topo->nnumas && at.numa < 0; n++) {
        dt_cpuset_t common;
        dt_cpuset_and(&common, &at.cpus, &reader->topo->numa[n].cpus);
        if (dt_cpuset_count(&common) > 0 && dt_cpuset_equal(&common, &at.cpus))
            at.numa = (int16_t)n;
    }
    /* a device near to all of several NUMA nodes has no known locality */
    if (at.numa < 0 && object->type == HWLOC_OBJ_MACHINE)
        at.cpus = (dt_cpuset_t){0};
    return at;
}

/* The index of the bridge in reader->pci, added with those above it if need be;
 * -1 if the object is none. */
static dt_result_t add_bridge(struct reader *reader, hwloc_obj_t object,
                              int *index, struct dt_error *err)
{
    *index = -1;
    if (!object || object->type != HWLOC_OBJ_BRIDGE)
        return DT_SUCCESS;
    if (index_of(object) < 0) {
        int parent;
        dt_result_t rc = add_bridge(reader, object->parent, &parent, err);
        if (rc != DT_SUCCESS)
            return rc;
        const struct hwloc_bridge_attr_s *bridge = &object->attr->bridge;
        bool host = bridge->upstream_type == HWLOC_OBJ_BRIDGE_HOST;
        char name[24];
        if (host)
            snprintf(name, sizeof(name), "%04x:%02x",
                     bridge->downstream.pci.domain,
                     bridge->downstream.pci.secondary_bus);
        else
            bus_of(object, name);
        int added = dt_pci_add(reader->pci, name, parent, host,
                               locate(reader, object).numa, err);
        if (added < 0)
            return DT_ERR_CORRUPT;
        set_index(object, added);
    }
    *index = index_of(object);
    return DT_SUCCESS;
}

/* ---- GPUs ---- */

/* A GPU of AMD that its driver for computing knows, or that has a PCIe switch
 * of its own: the display of an APU has neither. */
static bool amd_computes(hwloc_obj_t pci)
{
    for (hwloc_obj_t dev = NULL; (dev = next_osdev(pci, dev));)
        if (begins(dev->name, "rsmi") || begins(dev->name, "opencl"))
            return true;
    hwloc_obj_t up = pci->parent;
    return up && up->type == HWLOC_OBJ_BRIDGE &&
           up->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI &&
           up->attr->bridge.upstream.pci.vendor_id == PCI_AMD;
}

static dt_vendor_t gpu_vendor(hwloc_obj_t object)
{
    const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;
    bool vga = pci->class_id == CLASS_VGA;
    if (!vga && pci->class_id != CLASS_3D && pci->class_id != CLASS_DISPLAY &&
        pci->class_id != CLASS_ACCELERATOR)
        return DT_VENDOR_UNKNOWN;
    bool used;
    switch (pci->vendor_id) {
    case PCI_NVIDIA:
        return DT_VENDOR_NVIDIA;
    case PCI_AMD:
        used = !vga || amd_computes(object);
        return used ? DT_VENDOR_AMD : DT_VENDOR_UNKNOWN;
    case PCI_INTEL: /* bus 0 is inside the processor */
        used = !vga && (pci->domain != 0 || pci->bus != 0);
        return used ? DT_VENDOR_INTEL : DT_VENDOR_UNKNOWN;
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

/* Bytes that an OS device has, which hwloc gives in KiB; 0 unknown. */
static uint64_t memory_of(hwloc_obj_t osdev)
{
    const char *text = info(osdev, "CUDAGlobalMemorySize");
    uint64_t kib = 0;
    if (!*text)
        text = info(osdev, "RSMIVRAMSize");
    return dt_number_scan(&text, 10, UINT64_MAX / 1024, &kib) ? kib * 1024 : 0;
}

/* Fill what one of the GPU's OS devices knows and no earlier one did. */
static void describe(dt_topo_gpu_t *gpu, int index, hwloc_obj_t osdev)
{
    const char *nvidia = info(osdev, "NVIDIAUUID");
    const char *uuid = *nvidia ? nvidia : info(osdev, "AMDUUID");
    set_index(osdev, index);
    if (!*gpu->name)
        dt_topo_text(gpu->name, sizeof(gpu->name), info(osdev, "GPUModel"));
    if (!*gpu->uuid && *uuid)
        set_uuid(gpu, uuid);
    if (gpu->memory == 0)
        gpu->memory = memory_of(osdev);
}

static dt_topo_gpu_t *add_gpu(struct reader *reader, hwloc_obj_t pci,
                              dt_vendor_t vendor, int bridge,
                              struct dt_error *err)
{
    dt_topo_gpu_t *gpu = dt_topo_add_gpu(reader->topo, err);
    if (!gpu)
        return NULL;
    struct locality at = locate(reader, pci);
    bus_of(pci, gpu->bus);
    gpu->vendor = vendor;
    gpu->numa = at.numa;
    gpu->package = at.package;
    gpu->cpus = at.cpus;
    reader->gpu_bridge[reader->topo->ngpus - 1] = bridge;
    return gpu;
}

static int osdev_number(hwloc_obj_t osdev)
{
    const char *digits = osdev->name + strcspn(osdev->name, "0123456789");
    uint64_t number = 0;
    dt_number_scan(&digits, 10, INT_MAX, &number);
    return (int)number;
}

/* The devices of AMD's driver under one PCI device, by number; there are
 * several when it is partitioned. */
static size_t partitions(hwloc_obj_t pci, hwloc_obj_t osdev[DT_TOPO_MAX_GPUS])
{
    size_t n = 0;
    for (hwloc_obj_t dev = NULL; (dev = next_osdev(pci, dev));) {
        if (!begins(dev->name, "rsmi") || n == DT_TOPO_MAX_GPUS)
            continue;
        size_t at = n++;
        for (; at > 0 && osdev_number(osdev[at - 1]) > osdev_number(dev); at--)
            osdev[at] = osdev[at - 1];
        osdev[at] = dev;
    }
    return n;
}

static dt_result_t add_gpus(struct reader *reader, hwloc_obj_t pci,
                            dt_vendor_t vendor, struct dt_error *err)
{
    dt_topo_t *topo = reader->topo;
    hwloc_obj_t osdev[DT_TOPO_MAX_GPUS];
    int bridge = -1;
    size_t nparts = partitions(pci, osdev);
    dt_result_t rc = check_bus(topo, pci, err);
    if (rc == DT_SUCCESS)
        rc = add_bridge(reader, pci->parent, &bridge, err);
    if (rc != DT_SUCCESS)
        return rc;
    set_index(pci, (int)topo->ngpus);
    for (size_t part = 0; part < nparts || part == 0; part++) {
        int index = (int)topo->ngpus;
        dt_topo_gpu_t *gpu = add_gpu(reader, pci, vendor, bridge, err);
        if (!gpu)
            return DT_ERR_UNSUPPORTED;
        if (nparts > 1) {
            gpu->part = (int16_t)part;
            describe(gpu, index, osdev[part]);
        } else {
            for (hwloc_obj_t dev = NULL; (dev = next_osdev(pci, dev));)
                describe(gpu, index, dev);
        }
        const char *product = info(pci, "PCIDevice");
        if (!*gpu->name)
            dt_topo_text(gpu->name, sizeof(gpu->name),
                         *product ? product : pci->name);
    }
    return DT_SUCCESS;
}

/* ---- NICs ---- */

static bool is_slingshot(hwloc_obj_t pci)
{
    if (pci->attr->pcidev.vendor_id == PCI_HPE &&
        pci->attr->pcidev.device_id == CASSINI)
        return true;
    for (hwloc_obj_t dev = NULL; (dev = next_osdev(pci, dev));)
        if (dev->subtype && strcmp(dev->subtype, "Slingshot") == 0)
            return true;
    return false;
}

/* The first verbs device of a PCI device, NULL if there is none. */
static hwloc_obj_t verbs_of(hwloc_obj_t pci)
{
    hwloc_obj_t dev = next_osdev(pci, NULL);
    while (dev && dev->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS)
        dev = next_osdev(pci, dev);
    return dev;
}

/* A port of a verbs device, as the kernel numbers its states. */
struct port {
    unsigned number, state, lid; /* 0: none */
};
#define PORT_ACTIVE 4

/* Take what an info such as Port1State="4: ACTIVE" says of a port that is
 * preferred: the first active one, else the first. */
static void read_port(struct port *port, const char *name, const char *value)
{
    uint64_t number, got = 0;
    name += strlen("Port");
    if (!dt_number_scan(&name, 10, 255, &number) || number == 0)
        return;
    if (strcmp(name, "State") == 0) {
        dt_number_scan(&value, 10, 255, &got);
        if (port->number == 0 ||
            (port->state != PORT_ACTIVE && got == PORT_ACTIVE))
            *port = (struct port){.number = (unsigned)number,
                                  .state = (unsigned)got};
    } else if (strcmp(name, "LID") == 0 && port->number == number) {
        value += begins(value, "0x") ? 2 : 0;
        dt_number_scan(&value, 16, UINT32_MAX, &got);
        port->lid = (unsigned)got;
    }
}

static struct port port_of(hwloc_obj_t verbs)
{
    struct port port = {0};
    for (unsigned i = 0; i < verbs->infos_count; i++)
        if (begins(verbs->infos[i].name, "Port") && verbs->infos[i].value)
            read_port(&port, verbs->infos[i].name, verbs->infos[i].value);
    return port;
}

static dt_nic_type_t nic_type(hwloc_obj_t pci, const struct port *port,
                              const char *net)
{
    if (is_slingshot(pci))
        return DT_NIC_SLINGSHOT;
    if (pci->attr->pcidev.vendor_id == PCI_AMAZON)
        return DT_NIC_EFA;
    /* only InfiniBand has LIDs; a port that is down may have none */
    if (pci->attr->pcidev.class_id == CLASS_INFINIBAND || port->lid != 0 ||
        begins(net, "ib"))
        return DT_NIC_IB;
    return DT_NIC_ROCE;
}

/* The names of one kind, appended with '/' between them. */
static void add_names(dt_topo_nic_t *nic, hwloc_obj_t pci,
                      hwloc_obj_osdev_type_t kind)
{
    for (hwloc_obj_t dev = NULL; (dev = next_osdev(pci, dev));) {
        size_t used = strlen(nic->names);
        if (dev->attr->osdev.type != kind || !dev->name || !*dev->name ||
            used + strlen(dev->name) + 2 > sizeof(nic->names))
            continue;
        if (used > 0)
            nic->names[used++] = '/';
        dt_topo_text(nic->names + used, sizeof(nic->names) - used, dev->name);
        if (kind == HWLOC_OBJ_OSDEV_NETWORK && !*nic->net)
            dt_topo_text(nic->net, sizeof(nic->net), dev->name);
        if (!*nic->name)
            dt_topo_text(nic->name, sizeof(nic->name), dev->name);
    }
}

static dt_result_t add_nic(struct reader *reader, hwloc_obj_t pci,
                           struct dt_error *err)
{
    int bridge = -1;
    dt_result_t rc = check_bus(reader->topo, pci, err);
    if (rc == DT_SUCCESS)
        rc = add_bridge(reader, pci->parent, &bridge, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_topo_nic_t *nic = dt_topo_add_nic(reader->topo, err);
    if (!nic)
        return DT_ERR_UNSUPPORTED;
    struct locality at = locate(reader, pci);
    bus_of(pci, nic->bus);
    nic->numa = at.numa;
    nic->package = at.package;
    reader->nic_bridge[reader->topo->nnics - 1] = bridge;
    add_names(nic, pci, HWLOC_OBJ_OSDEV_OPENFABRICS);
    add_names(nic, pci, HWLOC_OBJ_OSDEV_NETWORK);
    if (!*nic->name)
        dt_topo_text(nic->name, sizeof(nic->name), nic->bus);
    hwloc_obj_t verbs = verbs_of(pci);
    struct port port = verbs ? port_of(verbs) : (struct port){0};
    nic->type = nic_type(pci, &port, nic->net);
    if (verbs) { /* without a port no message gets through */
        nic->port = (int16_t)port.number;
        nic->state = port.state == PORT_ACTIVE ? DT_LINK_UP : DT_LINK_DOWN;
    }
    return DT_SUCCESS;
}

dt_result_t dt_hwloc_devices(hwloc_topology_t hwloc, dt_topo_t *topo,
                             struct dt_error *err)
{
    struct reader reader = {.topo = topo};
    reader.pci = calloc(1, sizeof(*reader.pci));
    if (!reader.pci)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc = DT_SUCCESS;
    hwloc_obj_t pci = NULL;
    while (rc == DT_SUCCESS && (pci = hwloc_get_next_pcidev(hwloc, pci))) {
        dt_vendor_t vendor = gpu_vendor(pci);
        if (vendor != DT_VENDOR_UNKNOWN)
            rc = add_gpus(&reader, pci, vendor, err);
        else if (is_slingshot(pci) || verbs_of(pci))
            rc = add_nic(&reader, pci, err);
    }
    int bridge[DT_TOPO_MAX_DEVICES];
    memcpy(bridge, reader.gpu_bridge, topo->ngpus * sizeof(int));
    memcpy(bridge + topo->ngpus, reader.nic_bridge, topo->nnics * sizeof(int));
    if (rc == DT_SUCCESS)
        rc = dt_pci_apply(reader.pci, bridge, topo, err);
    free(reader.pci);
    return rc;
}
