/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* normalize.c - fills in what a source leaves open: order, cores, localities,
 * paths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/model/model.h"

/* ---- checks ---- */

static bool below(int index, uint32_t n)
{
    return index >= -1 && index < (int)n;
}

static dt_result_t check(const dt_topo_t *topo, struct dt_error *err)
{
    uint32_t nnumas = topo->nnumas, nswitches = topo->nswitches;
    for (uint32_t i = 0; i < nswitches; i++)
        /* a parent comes before its child, so there is no cycle */
        if (!below(topo->switches[i].parent, i) ||
            !below(topo->switches[i].numa, nnumas))
            return dt_error_set(
                err, DT_ERR_CORRUPT,
                "PCIe switch %u has a parent that does not exist", i);
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        const dt_topo_gpu_t *gpu = &topo->gpu[i];
        if (!below(gpu->numa, nnumas) || !below(gpu->memory_numa, nnumas) ||
            !below(gpu->under, nswitches) ||
            !below(gpu->package, DT_TOPO_MAX_PACKAGES))
            return dt_error_set(
                err, DT_ERR_CORRUPT,
                "GPU %u refers to a NUMA node, switch or package "
                "that does not exist",
                i);
    }
    for (uint32_t i = 0; i < topo->nnics; i++) {
        const dt_topo_nic_t *nic = &topo->nic[i];
        if (!below(nic->numa, nnumas) || !below(nic->under, nswitches) ||
            !below(nic->package, DT_TOPO_MAX_PACKAGES))
            return dt_error_set(
                err, DT_ERR_CORRUPT,
                "NIC %s refers to a NUMA node, switch or package "
                "that does not exist",
                nic->name);
    }
    for (uint32_t i = 0; i < nnumas; i++)
        if (!below(topo->numa[i].gpu, topo->ngpus) ||
            !below(topo->numa[i].package, DT_TOPO_MAX_PACKAGES))
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "NUMA node %u refers to a GPU or package that "
                                "does not exist",
                                topo->numa[i].id);
    return DT_SUCCESS;
}

/* More memory than any machine has is an error of the source. */
static void doubt_memory(dt_topo_t *topo)
{
    for (uint32_t i = 0; i < topo->nnumas; i++)
        if (topo->numa[i].memory > DT_TOPO_MAX_MEMORY)
            topo->numa[i].memory = 0;
    for (uint32_t i = 0; i < topo->ngpus; i++)
        if (topo->gpu[i].memory > DT_TOPO_MAX_MEMORY)
            topo->gpu[i].memory = 0;
}

/* ---- the order of devices ---- */

/* By value of the bus id; those without one last. */
static int compare_bus(const char *a, const char *b)
{
    if (!*a || !*b)
        return !*a - !*b;
    size_t la = strcspn(a, ":"), lb = strcspn(b, ":");
    if (la != lb)
        return la < lb ? -1 : 1; /* a longer domain is a larger one */
    return strcmp(a, b);
}

static bool gpu_after(const dt_topo_gpu_t *a, const dt_topo_gpu_t *b)
{
    int bus = compare_bus(a->bus, b->bus);
    return bus > 0 || (bus == 0 && *a->bus && a->part > b->part);
}

static bool nic_after(const dt_topo_nic_t *a, const dt_topo_nic_t *b)
{
    int bus = compare_bus(a->bus, b->bus);
    return bus > 0 || (bus == 0 && *a->bus && strcmp(a->name, b->name) > 0);
}

/* Stable, and there are few. from[new index] = old index. */
static void sort_devices(dt_topo_t *topo, uint8_t *from)
{
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        dt_topo_gpu_t gpu = topo->gpu[i];
        uint32_t at = i;
        for (; at > 0 && gpu_after(&topo->gpu[at - 1], &gpu); at--) {
            topo->gpu[at] = topo->gpu[at - 1];
            from[at] = from[at - 1];
        }
        topo->gpu[at] = gpu;
        from[at] = (uint8_t)i;
    }
    from += topo->ngpus;
    for (uint32_t i = 0; i < topo->nnics; i++) {
        dt_topo_nic_t nic = topo->nic[i];
        uint32_t at = i;
        for (; at > 0 && nic_after(&topo->nic[at - 1], &nic); at--) {
            topo->nic[at] = topo->nic[at - 1];
            from[at] = from[at - 1];
        }
        topo->nic[at] = nic;
        from[at] = (uint8_t)(topo->ngpus + i);
    }
}

static uint8_t worse(uint8_t a, uint8_t b)
{
    if (a >= DT_PATH_UNKNOWN || b >= DT_PATH_UNKNOWN) /* the known one */
        return a < b ? a : b;
    return a > b ? a : b;
}

/* The matrices in the new order, made symmetric. */
static dt_result_t reorder(dt_topo_t *topo, struct dt_error *err)
{
    uint8_t from[DT_TOPO_MAX_DEVICES];
    uint32_t n = topo->ngpus + topo->nnics;
    dt_topo_t *old = malloc(sizeof(*old));
    if (!old)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    sort_devices(topo, from);
    memcpy(old->pci, topo->pci, sizeof(old->pci));
    memcpy(old->links, topo->links, sizeof(old->links));
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            uint8_t path =
                worse(old->pci[from[a]][from[b]], old->pci[from[b]][from[a]]);
            topo->pci[a][b] =
                path > DT_PATH_UNKNOWN ? (uint8_t)DT_PATH_UNKNOWN : path;
            if (a == b)
                topo->pci[a][b] = DT_PATH_NVL;
            if (a >= topo->ngpus || b >= topo->ngpus)
                continue;
            uint16_t there = old->links[from[a]][from[b]];
            uint16_t back = old->links[from[b]][from[a]];
            topo->links[a][b] = a == b ? 0 : there < back ? there : back;
        }
    for (uint32_t i = 0; i < topo->nnumas; i++)
        for (uint32_t a = 0; a < topo->ngpus; a++)
            if (topo->numa[i].gpu == from[a]) {
                topo->numa[i].gpu = (int16_t)a;
                break;
            }
    free(old);
    return DT_SUCCESS;
}

/* ---- CPUs ---- */

static bool is_empty(const dt_cpuset_t *set)
{
    static const dt_cpuset_t empty;
    return dt_cpuset_equal(set, &empty);
}

static bool is_within(const dt_cpuset_t *inner, const dt_cpuset_t *outer)
{
    dt_cpuset_t both;
    dt_cpuset_and(&both, inner, outer);
    return dt_cpuset_equal(&both, inner);
}

static void number_cpus(dt_topo_t *topo)
{
    for (uint32_t i = 0; i < topo->nnumas; i++)
        for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++) {
            if (!dt_cpuset_has(&topo->numa[i].cpus, c))
                continue;
            dt_topo_cpu_t *cpu = &topo->cpu[c];
            cpu->present = true;
            if (cpu->numa < 0)
                cpu->numa = (int16_t)i;
            if (cpu->numa != (int16_t)i) { /* a CPU has one NUMA node */
                dt_cpuset_remove(&topo->numa[i].cpus, c);
                continue;
            }
            if (cpu->package < 0)
                cpu->package = topo->numa[i].package;
            if (topo->numa[i].package < 0)
                topo->numa[i].package = cpu->package;
        }
    for (uint32_t i = 0; topo->nnumas == 0 && i < topo->ngpus; i++)
        for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++)
            if (dt_cpuset_has(&topo->gpu[i].cpus, c))
                topo->cpu[c].present = true;
    topo->ncpus = 0;
    for (uint32_t c = 0; c < DT_TOPO_MAX_CPUS; c++) {
        if (topo->cpu[c].present)
            topo->ncpus = c + 1;
        else /* offline */
            for (uint32_t i = 0; i < topo->nnumas; i++)
                dt_cpuset_remove(&topo->numa[i].cpus, c);
    }
}

/* Siblings are the CPUs c and c + offset of a set. Only two things show the
 * offset: a set of two equal runs of more than one CPU, as Linux numbers the
 * threads of cores, and a node that has each CPU of the upper half of its
 * numbers in the set of that in the lower half. Runs of one CPU show nothing:
 * some firmware numbers the CPUs of two sockets in turn. */

/* The distance of the two runs of the set; 0: it has no such runs. */
static size_t run_distance(const dt_cpuset_t *set)
{
    size_t start[2] = {0}, length[2] = {0}, n = 0;
    bool in = false;
    for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++) {
        bool has = dt_cpuset_has(set, c);
        if (has && !in && n == 2)
            return 0;
        if (has && !in)
            start[n++] = c;
        if (has)
            length[n - 1]++;
        in = has;
    }
    return n == 2 && length[0] == length[1] && length[0] > 1
               ? start[1] - start[0]
               : 0;
}

/* Half the number of all CPUs, if the sets agree that siblings are so far
 * apart, and nothing is missing; else 0. */
static size_t half_distance(const dt_topo_t *topo)
{
    size_t half = topo->ncpus / 2, sets = 0;
    for (uint32_t i = 0; i < topo->nnumas; i++)
        sets += !is_empty(&topo->numa[i].cpus);
    if (sets < 2 || topo->ncpus % 2) /* one set shows nothing */
        return 0;
    for (size_t c = 0; c < half; c++) {
        const dt_topo_cpu_t *low = &topo->cpu[c], *high = &topo->cpu[c + half];
        if (!low->present || !high->present || low->numa < 0 ||
            low->numa != high->numa)
            return 0;
    }
    return half;
}

/* 0: nothing shows it, or sets differ. */
static size_t sibling_distance(const dt_topo_t *topo)
{
    uint32_t n = topo->nnumas ? topo->nnumas : topo->ngpus;
    size_t distance = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t d = run_distance(topo->nnumas ? &topo->numa[i].cpus
                                             : &topo->gpu[i].cpus);
        if (d && distance && d != distance)
            return 0;
        distance = d ? d : distance;
    }
    return distance ? distance : half_distance(topo);
}

/* Set the cores of the CPUs of set, unless one is known: the lowest CPU stands
 * for its core. */
static void infer_cores(dt_topo_t *topo, const dt_cpuset_t *set,
                        size_t distance)
{
    for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++)
        if (dt_cpuset_has(set, c) && topo->cpu[c].core != DT_TOPO_NO_CORE)
            return;
    for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++) {
        if (!dt_cpuset_has(set, c))
            continue;
        bool second = distance && c >= distance &&
                      dt_cpuset_has(set, c - distance) &&
                      topo->cpu[c - distance].core == c - distance;
        topo->cpu[c].core = (uint16_t)(second ? c - distance : c);
    }
}

static void number_cores(dt_topo_t *topo)
{
    size_t distance = sibling_distance(topo);
    for (uint32_t i = 0; i < topo->nnumas; i++)
        infer_cores(topo, &topo->numa[i].cpus, distance);
    for (uint32_t i = 0; topo->nnumas == 0 && i < topo->ngpus; i++)
        infer_cores(topo, &topo->gpu[i].cpus, distance);
    /* an unused number, for CPUs without a core */
    uint16_t renamed[DT_TOPO_MAX_CPUS], next = 0;
    memset(renamed, 0xff, sizeof(renamed));
    for (uint32_t c = 0; c < topo->ncpus; c++) {
        dt_topo_cpu_t *cpu = &topo->cpu[c];
        if (!cpu->present)
            continue;
        if (cpu->core >= DT_TOPO_MAX_CPUS) {
            cpu->core = next++;
            continue;
        }
        if (renamed[cpu->core] == UINT16_MAX)
            renamed[cpu->core] = next++;
        cpu->core = renamed[cpu->core];
    }
}

/* ---- localities ---- */

/* NVIDIA's driver names the device file by the minor number. */
static void name_file(dt_topo_gpu_t *gpu)
{
    if (gpu->vendor == DT_VENDOR_NVIDIA && gpu->minor_number >= 0 &&
        gpu->part < 0 && !*gpu->file)
        snprintf(gpu->file, sizeof(gpu->file), "/dev/nvidia%d",
                 gpu->minor_number);
}

static void locate_gpu(dt_topo_t *topo, dt_topo_gpu_t *gpu)
{
    for (uint32_t i = 0; i < topo->nnumas && gpu->numa < 0; i++)
        if (!is_empty(&gpu->cpus) && is_within(&gpu->cpus, &topo->numa[i].cpus))
            gpu->numa = (int16_t)i;
    if (gpu->numa < 0 && gpu->under >= 0)
        gpu->numa = topo->switches[gpu->under].numa;
    if (gpu->numa < 0)
        return;
    const dt_topo_numa_t *numa = &topo->numa[gpu->numa];
    if (is_empty(&gpu->cpus))
        gpu->cpus = numa->cpus;
    if (gpu->package < 0)
        gpu->package = numa->package;
}

static void locate(dt_topo_t *topo)
{
    for (uint32_t i = 0; i < topo->nswitches; i++) {
        dt_topo_switch_t *bridge = &topo->switches[i];
        if (bridge->numa < 0 && bridge->parent >= 0)
            bridge->numa = topo->switches[bridge->parent].numa;
    }
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        locate_gpu(topo, &topo->gpu[i]);
        name_file(&topo->gpu[i]);
        int memory = topo->gpu[i].memory_numa;
        if (memory >= 0 && topo->numa[memory].gpu < 0)
            topo->numa[memory].gpu = (int16_t)i;
    }
    for (uint32_t i = 0; i < topo->nnumas; i++) {
        dt_topo_numa_t *numa = &topo->numa[i];
        if (numa->gpu >= 0 && topo->gpu[numa->gpu].memory_numa < 0)
            topo->gpu[numa->gpu].memory_numa = (int16_t)i;
    }
    for (uint32_t i = 0; i < topo->nnics; i++) {
        dt_topo_nic_t *nic = &topo->nic[i];
        if (!*nic->names)
            dt_topo_text(nic->names, sizeof(nic->names), nic->name);
        if (nic->numa < 0 && nic->under >= 0)
            nic->numa = topo->switches[nic->under].numa;
        if (nic->package < 0 && nic->numa >= 0)
            nic->package = topo->numa[nic->numa].package;
    }
}

static void count_packages(dt_topo_t *topo)
{
    int last = -1;
    for (uint32_t i = 0; i < topo->nnumas; i++)
        if (topo->numa[i].package > last)
            last = topo->numa[i].package;
    for (uint32_t c = 0; c < topo->ncpus; c++)
        if (topo->cpu[c].present && topo->cpu[c].package > last)
            last = topo->cpu[c].package;
    topo->npackages = (uint32_t)(last + 1);
}

/* ---- paths ---- */

struct place {
    int numa, package, under;
    const dt_cpuset_t *cpus; /* NULL for a NIC */
};

static struct place where(const dt_topo_t *topo, uint32_t device)
{
    if (device < topo->ngpus) {
        const dt_topo_gpu_t *gpu = &topo->gpu[device];
        return (struct place){gpu->numa, gpu->package, gpu->under, &gpu->cpus};
    }
    const dt_topo_nic_t *nic = &topo->nic[device - topo->ngpus];
    return (struct place){nic->numa, nic->package, nic->under, NULL};
}

static int common_switch(const dt_topo_t *topo, int a, int b)
{
    while (a != b) /* a parent has the lower index */
        if (a > b)
            a = topo->switches[a].parent;
        else
            b = topo->switches[b].parent;
    return a;
}

static uint8_t derive(const dt_topo_t *topo, struct place a, struct place b)
{
    if (a.under >= 0 && b.under >= 0) {
        int common = common_switch(topo, a.under, b.under);
        if (common >= 0 && topo->switches[common].parent < 0)
            return DT_PATH_PHB;
        if (common >= 0)
            return a.under == b.under ? DT_PATH_PIX : DT_PATH_PXB;
    }
    if (a.numa >= 0 && b.numa >= 0)
        return a.numa == b.numa ? DT_PATH_NODE : DT_PATH_SYS;
    if (a.cpus && b.cpus && !is_empty(a.cpus) && !is_empty(b.cpus))
        return dt_cpuset_equal(a.cpus, b.cpus) ? DT_PATH_NODE : DT_PATH_SYS;
    /* the packages tell how far: see distance() of nics.c */
    return a.package >= 0 && b.package >= 0 ? DT_PATH_SYS : DT_PATH_UNKNOWN;
}

static void derive_paths(dt_topo_t *topo)
{
    uint32_t n = topo->ngpus + topo->nnics;
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            if (a != b && topo->pci[a][b] == DT_PATH_UNKNOWN)
                topo->pci[a][b] = derive(topo, where(topo, a), where(topo, b));
}

dt_result_t dt_topo_normalize(dt_topo_t *topo, struct dt_error *err)
{
    dt_result_t rc = check(topo, err);
    if (rc == DT_SUCCESS)
        rc = reorder(topo, err);
    if (rc != DT_SUCCESS)
        return rc;
    doubt_memory(topo);
    number_cpus(topo);
    number_cores(topo);
    locate(topo);
    count_packages(topo);
    derive_paths(topo);
    return DT_SUCCESS;
}
