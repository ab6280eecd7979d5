/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nvml.c - what NVML knows about the GPUs. */
#include "topo/sources/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sources.h"

/* ---- the library ---- */

#define NREQUIRED 4

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct dt_nvml, init)},
    {"nvmlDeviceGetCount_v2", offsetof(struct dt_nvml, count)},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct dt_nvml, by_index)},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct dt_nvml, pci)},
    {"nvmlShutdown", offsetof(struct dt_nvml, shutdown)},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct dt_nvml, by_bus)},
    {"nvmlDeviceGetName", offsetof(struct dt_nvml, name)},
    {"nvmlDeviceGetUUID", offsetof(struct dt_nvml, uuid)},
    {"nvmlDeviceGetMinorNumber", offsetof(struct dt_nvml, minor_number)},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct dt_nvml, memory)},
    {"nvmlDeviceGetNumaNodeId", offsetof(struct dt_nvml, memory_numa)},
    {"nvmlDeviceGetCpuAffinity", offsetof(struct dt_nvml, cpus)},
    {"nvmlDeviceGetTopologyCommonAncestor", offsetof(struct dt_nvml, ancestor)},
    {"nvmlDeviceGetP2PStatus", offsetof(struct dt_nvml, p2p)},
    {"nvmlDeviceGetNvLinkState", offsetof(struct dt_nvml, link_state)},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(struct dt_nvml, link_pci)},
    {"nvmlDeviceGetNvLinkRemoteDeviceType",
     offsetof(struct dt_nvml, link_remote)},
    {"nvmlDeviceGetGpuFabricInfoV", offsetof(struct dt_nvml, fabric)},
    {"nvmlDeviceGetMigMode", offsetof(struct dt_nvml, mig_mode)},
    {"nvmlDeviceGetMaxMigDeviceCount", offsetof(struct dt_nvml, mig_count)},
    {"nvmlDeviceGetMigDeviceHandleByIndex",
     offsetof(struct dt_nvml, mig_by_index)},
};
#define NSYMBOLS (sizeof(symbols) / sizeof(symbols[0]))

static const char *what(int code)
{
    switch (code) {
    case DT_NVML_NO_PERMISSION:
        return "no permission for the driver's device files (4): ask the "
               "administrator";
    case DT_NVML_NO_DRIVER:
        return "the driver is not loaded (9): load it";
    case DT_NVML_MISMATCH:
        return "driver/library version mismatch (18): reboot or reload the "
               "driver";
    default:
        return NULL;
    }
}

static dt_result_t start(struct dt_nvml *nvml, struct dt_error *err)
{
    int code = nvml->init();
    if (!code)
        return DT_SUCCESS;
    if (what(code))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "NVML: %s; GPUs are known by PCI only", what(code));
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "NVML: it does not start, error %d: see what "
                        "nvidia-smi says; GPUs are known by PCI only",
                        code);
}

static dt_result_t open_nvml(struct dt_nvml *nvml, struct dt_error *err)
{
    memset(nvml, 0, sizeof(*nvml));
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        return dt_error_set(err, DT_ERR_NOT_FOUND,
                            "no NVML on this node: libnvidia-ml.so.1, a part "
                            "of the NVIDIA driver, cannot be loaded");

    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < NSYMBOLS; i++) {
        void *symbol = dlsym(nvml->library, symbols[i].name);
        /* ISO C has no cast from an object's to a function's address */
        memcpy((char *)nvml + symbols[i].offset, &symbol, sizeof(symbol));
        if (symbol || i >= NREQUIRED)
            continue;
        rc = dt_error_set(err, DT_ERR_SYSTEM,
                          "NVML: libnvidia-ml.so.1 has no %s: install a newer "
                          "driver; GPUs are known by PCI only",
                          symbols[i].name);
        goto close_library;
    }
    rc = start(nvml, err);
    if (!rc)
        return DT_SUCCESS;
close_library:
    dlclose(nvml->library);
    return rc;
}

static void close_nvml(struct dt_nvml *nvml)
{
    if (nvml->shutdown)
        nvml->shutdown();
    dlclose(nvml->library);
}

/* ---- one query ---- */

/* A GPU that NVML answers for. */
struct found {
    void *device;
    char bus[24];
    bool placed; /* it is in the new topology, whole or as partitions */
    bool mig;    /* its partitions have no peer access to other GPUs */
    uint16_t over_switch;              /* links to switches */
    uint16_t direct[DT_TOPO_MAX_GPUS]; /* links to found[] */
};

/* The matrices are over device indices, which MIG instances shift: so a new
 * topology is built, and replaces the old one when nothing failed. */
struct query {
    struct dt_nvml nvml;
    const dt_topo_t *old;
    dt_topo_t *topo;
    size_t nfound, nlost; /* nlost: indices of NVML that answer with an error */
    struct found found[DT_TOPO_MAX_GPUS];
    bool lost[DT_TOPO_MAX_GPUS]; /* of old->gpu */
    /* of topo->gpu: its index in found, in old->gpu, or -1 */
    int16_t asked[DT_TOPO_MAX_GPUS], was[DT_TOPO_MAX_GPUS];
};

/* ---- which GPUs there are ---- */

static int find(const struct query *q, const char *bus)
{
    for (size_t i = 0; *bus && i < q->nfound; i++)
        if (strcmp(q->found[i].bus, bus) == 0)
            return (int)i;
    return -1;
}

/* NVML is not trusted to end its strings. */
static bool bus_of(struct dt_nvml_pci *pci, char bus[24])
{
    pci->text[sizeof(pci->text) - 1] = '\0';
    return dt_topo_bus(pci->text, bus);
}

/* Returns NVML's result for the device. */
static int add_found(struct query *q, void *device)
{
    struct dt_nvml_pci pci = {.domain = 0};
    char bus[24];
    int code = q->nvml.pci(device, &pci);
    if (code || !bus_of(&pci, bus) || find(q, bus) >= 0 ||
        q->nfound == DT_TOPO_MAX_GPUS)
        return code;
    struct found *found = &q->found[q->nfound++];
    found->device = device;
    memcpy(found->bus, bus, sizeof(found->bus));
    return 0;
}

/* A GPU that is only hidden from this process, or unknown to the driver, is not
 * lost. */
static bool is_lost(int code)
{
    return code == DT_NVML_LOST || code == DT_NVML_RESET_REQUIRED ||
           code == DT_NVML_IRQ || code == DT_NVML_POWER_CABLE ||
           code == DT_NVML_UNKNOWN;
}

static dt_result_t find_listed(struct query *q, struct dt_error *err)
{
    unsigned n = 0;
    int code = q->nvml.count(&n);
    if (code)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "NVML: it does not count its GPUs, error %d: see "
                            "what nvidia-smi says; GPUs are known by PCI only",
                            code);
    for (unsigned i = 0; i < n && i < DT_TOPO_MAX_GPUS; i++) {
        void *device = NULL;
        code = q->nvml.by_index(i, &device);
        if (!code)
            code = add_found(q, device);
        q->nlost += is_lost(code);
    }
    return DT_SUCCESS;
}

/* A lost GPU has no index, or one that only gives an error. Ask by bus id;
 * where that is no use either, and NVML has as many failing indices as GPUs
 * are left over, these are they. */
static void find_lost(struct query *q)
{
    bool left[DT_TOPO_MAX_GPUS] = {false};
    size_t nleft = 0, nknown = 0;
    for (uint32_t i = 0; i < q->old->ngpus; i++) {
        const dt_topo_gpu_t *gpu = &q->old->gpu[i];
        if (gpu->vendor != DT_VENDOR_NVIDIA || !*gpu->bus ||
            find(q, gpu->bus) >= 0)
            continue;
        void *device = NULL;
        int code = DT_NVML_NOT_FOUND;
        if (q->nvml.by_bus)
            code = q->nvml.by_bus(gpu->bus, &device);
        if (!code)
            code = add_found(q, device);
        q->lost[i] = is_lost(code);
        nknown += q->lost[i];
        left[i] = code == DT_NVML_NOT_FOUND;
        nleft += left[i];
    }
    for (uint32_t i = 0; i < q->old->ngpus; i++)
        if (left[i] && nknown + nleft <= q->nlost)
            q->lost[i] = true;
}

/* ---- one GPU ---- */

static void ask_identity(struct query *q, void *device, dt_topo_gpu_t *gpu)
{
    const struct dt_nvml *nvml = &q->nvml;
    char text[128] = ""; /* its last byte stays NUL */
    struct dt_nvml_memory memory = {.total = 0};
    int code = 0;
    if (nvml->name)
        code = nvml->name(device, text, sizeof(text) - 1);
    if (!code && *text)
        dt_topo_text(gpu->name, sizeof(gpu->name), text);
    gpu->lost = gpu->lost || code == DT_NVML_LOST;

    text[0] = '\0';
    if (nvml->uuid)
        code = nvml->uuid(device, text, sizeof(text) - 1);
    if (!code && *text)
        dt_topo_text(gpu->uuid, sizeof(gpu->uuid), text);
    gpu->lost = gpu->lost || code == DT_NVML_LOST;

    if (nvml->memory && !nvml->memory(device, &memory))
        gpu->memory = memory.total;
}

/* The CPUs are cut to our own cgroup, so hwloc's are better. */
static void ask_cpus(struct query *q, void *device, dt_topo_gpu_t *gpu)
{
    unsigned long mask[DT_TOPO_MAX_CPUS / (8 * sizeof(unsigned long))] = {0};
    const size_t bits = 8 * sizeof(mask[0]);
    if (!q->nvml.cpus ||
        q->nvml.cpus(device, sizeof(mask) / sizeof(mask[0]), mask))
        return;
    for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++)
        if (mask[c / bits] >> c % bits & 1 &&
            (q->topo->ncpus == 0 || q->topo->cpu[c].present))
            dt_cpuset_add(&gpu->cpus, c);
}

static void ask_place(struct query *q, void *device, dt_topo_gpu_t *gpu)
{
    const struct dt_nvml *nvml = &q->nvml;
    unsigned number = 0;
    if (nvml->minor_number && !nvml->minor_number(device, &number) &&
        number <= INT16_MAX) {
        gpu->minor_number = (int16_t)number;
        snprintf(gpu->file, sizeof(gpu->file), "/dev/nvidia%u", number);
    }
    if (!nvml->memory_numa || nvml->memory_numa(device, &number))
        return;
    int numa = dt_topo_find_numa(q->topo, number);
    if (numa >= 0 && dt_cpuset_count(&q->topo->numa[numa].cpus) == 0)
        gpu->memory_numa = (int16_t)numa;
}

/* ---- the new topology ---- */

static dt_topo_gpu_t *add(struct query *q, int asked, int was,
                          struct dt_error *err)
{
    dt_topo_gpu_t *gpu = dt_topo_add_gpu(q->topo, err);
    if (!gpu)
        return NULL;
    q->asked[gpu - q->topo->gpu] = (int16_t)asked;
    q->was[gpu - q->topo->gpu] = (int16_t)was;
    return gpu;
}

/* A new entry for every MIG instance of the GPU whole, which is an entry of
 * its own already: the first takes that. */
static dt_result_t add_parts(struct query *q, int asked, int was,
                             dt_topo_gpu_t *gpu, struct dt_error *err)
{
    const dt_topo_gpu_t whole = *gpu;
    struct found *found = &q->found[asked];
    int16_t n = 0;
    unsigned limit = 0;
    if (!q->nvml.mig_count || !q->nvml.mig_by_index ||
        q->nvml.mig_count(found->device, &limit))
        limit = 0;
    for (unsigned i = 0; i < limit && i < DT_TOPO_MAX_GPUS; i++) {
        void *instance = NULL;
        if (q->nvml.mig_by_index(found->device, i, &instance))
            continue;
        dt_topo_gpu_t *part = n ? add(q, asked, was, err) : gpu;
        if (!part)
            return DT_ERR_UNSUPPORTED;
        *part = whole;
        part->part = n++;
        part->memory = 0;
        part->uuid[0] = '\0';
        ask_identity(q, instance, part);
    }
    if (n == 0)
        snprintf(gpu->name, sizeof(gpu->name), "%.40s (MIG, no instance)",
                 whole.name);
    return DT_SUCCESS;
}

/* The GPU found[asked], which is old->gpu[was] unless that is -1. */
static dt_result_t add_found_gpu(struct query *q, int asked, int was,
                                 struct dt_error *err)
{
    struct found *found = &q->found[asked];
    unsigned now = 0, later = 0;
    dt_topo_gpu_t *gpu = add(q, asked, was, err);
    if (!gpu)
        return DT_ERR_UNSUPPORTED;
    if (was >= 0)
        *gpu = q->old->gpu[was];
    memcpy(gpu->bus, found->bus, sizeof(gpu->bus));
    gpu->vendor = DT_VENDOR_NVIDIA;
    gpu->part = -1;
    ask_identity(q, found->device, gpu);
    ask_place(q, found->device, gpu);
    if (was < 0)
        ask_cpus(q, found->device, gpu);
    found->placed = true;
    if (!q->nvml.mig_mode || q->nvml.mig_mode(found->device, &now, &later) ||
        !now)
        return DT_SUCCESS;
    found->mig = true;
    return add_parts(q, asked, was, gpu, err);
}

static dt_result_t add_gpus(struct query *q, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (uint32_t i = 0; !rc && i < q->old->ngpus; i++) {
        const dt_topo_gpu_t *old = &q->old->gpu[i];
        int asked = find(q, old->bus);
        if (asked >= 0) { /* once, if it was there in partitions */
            if (!q->found[asked].placed)
                rc = add_found_gpu(q, asked, (int)i, err);
            continue;
        }
        dt_topo_gpu_t *gpu = add(q, -1, (int)i, err);
        if (!gpu)
            return DT_ERR_UNSUPPORTED;
        *gpu = *old;
        gpu->lost = gpu->lost || q->lost[i];
    }
    for (size_t i = 0; !rc && i < q->nfound; i++)
        if (!q->found[i].placed)
            rc = add_found_gpu(q, (int)i, -1, err);
    return rc;
}

/* All but GPUs and what is between devices. */
static dt_result_t copy_rest(struct query *q, struct dt_error *err)
{
    const dt_topo_t *old = q->old;
    dt_topo_t *topo = q->topo;
    memcpy(topo->source, old->source, sizeof(topo->source));
    memcpy(topo->nccl_file, old->nccl_file, sizeof(topo->nccl_file));
    memcpy(topo->cpu, old->cpu, sizeof(topo->cpu));
    memcpy(topo->numa, old->numa, sizeof(topo->numa));
    memcpy(topo->switches, old->switches, sizeof(topo->switches));
    topo->npackages = old->npackages;
    topo->ncpus = old->ncpus;
    topo->nnumas = old->nnumas;
    topo->nswitches = old->nswitches;
    for (uint32_t i = 0; i < old->nnics; i++) {
        dt_topo_nic_t *nic = dt_topo_add_nic(topo, err);
        if (!nic)
            return DT_ERR_UNSUPPORTED;
        *nic = old->nic[i];
    }
    return DT_SUCCESS;
}

/* GPUs whose memory is a NUMA node have other indices now. */
static void renumber_memory(struct query *q)
{
    for (uint32_t i = 0; i < q->topo->nnumas; i++) {
        int was = q->topo->numa[i].gpu;
        q->topo->numa[i].gpu = -1;
        for (uint32_t g = q->topo->ngpus; g-- > 0;)
            if ((was >= 0 && q->was[g] == was) ||
                q->topo->gpu[g].memory_numa == (int)i)
                q->topo->numa[i].gpu = (int16_t)g;
    }
}

/* ---- between two GPUs ---- */

static bool is_in_fabric(const struct query *q, void *device)
{
    struct dt_nvml_fabric fabric = {.version = DT_NVML_FABRIC_VERSION};
    return q->nvml.fabric && !q->nvml.fabric(device, &fabric) &&
           fabric.state == DT_NVML_FABRIC_COMPLETED && !fabric.status;
}

static void follow_link(struct query *q, struct found *found, unsigned link,
                        bool fabric)
{
    const struct dt_nvml *nvml = &q->nvml;
    struct dt_nvml_pci pci = {.domain = 0};
    unsigned type = DT_NVML_REMOTE_UNKNOWN;
    char bus[24];
    if (nvml->link_remote && nvml->link_remote(found->device, link, &type))
        type = DT_NVML_REMOTE_UNKNOWN;
    bool answered =
        nvml->link_pci && !nvml->link_pci(found->device, link, &pci);
    int far = answered && bus_of(&pci, bus) ? find(q, bus) : -1;
    if (far >= 0 && type != DT_NVML_REMOTE_SWITCH) {
        found->direct[far]++;
        return;
    }
    /* a virtual machine does not see its switches: their bus id is 0 */
    bool unseen = answered && !pci.domain && !pci.bus && !pci.device;
    if (type == DT_NVML_REMOTE_SWITCH || fabric ||
        (type == DT_NVML_REMOTE_UNKNOWN && unseen))
        found->over_switch++;
}

static void count_links(struct query *q)
{
    for (size_t i = 0; q->nvml.link_state && i < q->nfound; i++) {
        struct found *found = &q->found[i];
        bool fabric = is_in_fabric(q, found->device);
        for (unsigned link = 0; link < DT_NVML_MAX_LINKS; link++) {
            unsigned active = 0;
            if (!q->nvml.link_state(found->device, link, &active) && active)
                follow_link(q, found, link, fabric);
        }
    }
    for (uint32_t i = 0; q->nvml.link_state && i < q->topo->ngpus; i++) {
        int asked = q->asked[i];
        if (asked >= 0)
            q->topo->gpu[i].nvswitch =
                !q->found[asked].mig && q->found[asked].over_switch;
    }
}

static uint16_t links_between(const struct query *q, int a, int b)
{
    const struct found *one = &q->found[a], *other = &q->found[b];
    unsigned status = DT_NVML_P2P_UNKNOWN;
    if (a == b || one->mig || other->mig)
        return 0;
    uint16_t switched = one->over_switch < other->over_switch
                            ? one->over_switch
                            : other->over_switch;
    if (q->nvml.p2p &&
        !q->nvml.p2p(one->device, other->device, DT_NVML_P2P_NVLINK, &status) &&
        status > DT_NVML_P2P_OK && status <= DT_NVML_P2P_NOT_SUPPORTED)
        return 0;
    return (uint16_t)(one->direct[b] + switched);
}

static dt_path_t path_between(const struct query *q, int a, int b)
{
    unsigned level = 0;
    if (a == b)
        return DT_PATH_PIX; /* partitions */
    if (!q->nvml.ancestor ||
        q->nvml.ancestor(q->found[a].device, q->found[b].device, &level))
        return DT_PATH_UNKNOWN;
    switch (level) {
    case DT_NVML_INTERNAL:
    case DT_NVML_SINGLE:
        return DT_PATH_PIX;
    case DT_NVML_MULTIPLE:
        return DT_PATH_PXB;
    case DT_NVML_HOSTBRIDGE:
        return DT_PATH_PHB;
    case DT_NVML_NODE:
        return DT_PATH_NODE;
    case DT_NVML_SYSTEM:
        return DT_PATH_SYS;
    default:
        return DT_PATH_UNKNOWN;
    }
}

/* The index of a device of the new topology in the old one, or -1. */
static int old_index(const struct query *q, uint32_t device)
{
    if (device < q->topo->ngpus)
        return q->was[device];
    return (int)(device - q->topo->ngpus + q->old->ngpus);
}

static void fill_links(struct query *q, uint32_t a, uint32_t b)
{
    int one = q->asked[a], other = q->asked[b];
    int was_a = q->was[a], was_b = q->was[b];
    uint16_t *links = &q->topo->links[a][b];
    if (one >= 0 && other >= 0 && q->nvml.link_state)
        *links = links_between(q, one, other);
    else if (was_a >= 0 && was_b >= 0)
        *links = q->old->links[was_a][was_b];
}

static void fill_matrices(struct query *q)
{
    uint32_t n = q->topo->ngpus + q->topo->nnics;
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            int was_a = old_index(q, a), was_b = old_index(q, b);
            uint8_t *path = &q->topo->pci[a][b];
            if (was_a >= 0 && was_b >= 0 && was_a != was_b)
                *path = q->old->pci[was_a][was_b];
            if (a >= q->topo->ngpus || b >= q->topo->ngpus || a == b)
                continue;
            fill_links(q, a, b);
            if (*path == DT_PATH_UNKNOWN && q->asked[a] >= 0 &&
                q->asked[b] >= 0)
                *path = (uint8_t)path_between(q, q->asked[a], q->asked[b]);
        }
}

static dt_result_t ask(struct query *q, struct dt_error *err)
{
    dt_result_t rc = find_listed(q, err);
    if (rc)
        return rc;
    find_lost(q);
    rc = copy_rest(q, err);
    if (!rc)
        rc = add_gpus(q, err);
    if (rc)
        return rc;
    renumber_memory(q);
    count_links(q);
    fill_matrices(q);
    return dt_topo_normalize(q->topo, err);
}

dt_result_t dt_topo_ask_nvml(dt_topo_t *topo, struct dt_error *err)
{
    dt_result_t rc = DT_ERR_NO_MEMORY;
    struct query *q = calloc(1, sizeof(*q));
    dt_topo_t *fresh = dt_topo_create();
    if (!q || !fresh) {
        dt_error_set(err, rc, "no memory for a topology");
        goto free_both;
    }
    q->old = topo;
    q->topo = fresh;
    rc = open_nvml(&q->nvml, err);
    if (rc)
        goto free_both;
    rc = ask(q, err);
    close_nvml(&q->nvml);
    if (!rc)
        *topo = *fresh;
free_both:
    dt_topo_destroy(fresh);
    free(q);
    return rc;
}
