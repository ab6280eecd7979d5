/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* print.c - our own format, written; doc/topology.md. What is printed reads
 * back as the same topology. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/model/model.h"

enum { LIST = 16384 }; /* bytes of the longest list of CPUs, with room */

/* ---- which CPUs share a core ---- */

/* The CPUs of set in order, and the core of each. */
struct threads {
    size_t n;
    uint16_t cpu[DT_TOPO_MAX_CPUS], core[DT_TOPO_MAX_CPUS];
};

static void collect(const dt_topo_t *topo, const dt_cpuset_t *set,
                    struct threads *all)
{
    all->n = 0;
    for (uint16_t c = 0; c < DT_TOPO_MAX_CPUS; c++)
        if (dt_cpuset_has(set, c)) {
            all->cpu[all->n] = c;
            all->core[all->n++] = topo->cpu[c].core;
        }
}

/* Do "t threads per core, split or adjacent" describe all cores? */
static bool regular(const struct threads *all, size_t t, bool adjacent)
{
    size_t ncores = all->n / t;
    for (size_t i = 0; i < all->n; i++) {
        size_t core = adjacent ? i / t : i % ncores;
        size_t first = adjacent ? core * t : core;
        if (all->core[i] != all->core[first])
            return false;
        if (i == first && i > 0 && all->core[i] == all->core[i - 1])
            return false;
    }
    return true;
}

static bool taken(const struct threads *all, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (all->core[j] == all->core[i])
            return true;
    return false;
}

static void print_list(FILE *out, const struct threads *all)
{
    const char *before = " Cores=";
    for (size_t i = 0; i < all->n; i++) {
        if (taken(all, i))
            continue;
        fputs(before, out);
        for (size_t j = i; j < all->n; j++)
            if (all->core[j] == all->core[i])
                fprintf(out, j > i ? "+%u" : "%u", all->cpu[j]);
        before = ",";
    }
}

static void print_cores(FILE *out, const dt_topo_t *topo,
                        const dt_cpuset_t *set)
{
    struct threads all;
    collect(topo, set, &all);
    size_t t = 0;
    for (size_t i = 0; i < all.n; i++)
        t += all.core[i] == all.core[0];
    if (!all.n)
        return;
    bool whole = all.n % t == 0;
    if (whole && regular(&all, t, false))
        fprintf(out, " ThreadsPerCore=%zu", t);
    else if (whole && regular(&all, t, true))
        fprintf(out, " ThreadsPerCore=%zu Siblings=adjacent", t);
    else
        print_list(out, &all);
}

/* ---- lines ---- */

static void print_cpus(FILE *out, const dt_cpuset_t *set)
{
    char list[LIST];
    fputs(dt_cpuset_print(set, list, sizeof(list)), out);
}

static void print_value(FILE *out, const char *value)
{
    fprintf(out, strpbrk(value, " #=") ? "\"%s\"" : "%s", value);
}

static void print_text(FILE *out, const char *key, const char *value)
{
    if (!*value)
        return;
    fprintf(out, " %s=", key);
    print_value(out, value);
}

static void print_small(FILE *out, const char *key, int value)
{
    if (value >= 0)
        fprintf(out, " %s=%d", key, value);
}

static void print_bytes(FILE *out, uint64_t bytes)
{
    static const char units[] = "KMGT";
    size_t unit = 0;
    while (bytes && bytes % 1024 == 0 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    if (bytes)
        fprintf(out, " Memory=%llu%.*s", (unsigned long long)bytes, unit > 0,
                units + unit - (unit > 0));
}

static void print_numa(FILE *out, const dt_topo_t *topo, uint32_t i)
{
    static const dt_cpuset_t empty;
    const dt_topo_numa_t *numa = &topo->numa[i];
    fprintf(out, "Numa=%u", numa->id);
    print_small(out, "Package", numa->package);
    if (!dt_cpuset_equal(&numa->cpus, &empty)) {
        fputs(" Cpus=", out);
        print_cpus(out, &numa->cpus);
        print_cores(out, topo, &numa->cpus);
    }
    print_bytes(out, numa->memory);
    print_small(out, "Gpu", numa->gpu);
    fputc('\n', out);
}

/* CPUs outside any NUMA node, a line per package */
static void print_rest(FILE *out, const dt_topo_t *topo)
{
    for (int package = -1; package < DT_TOPO_MAX_PACKAGES; package++) {
        dt_cpuset_t set = {{0}};
        for (uint32_t c = 0; c < topo->ncpus; c++)
            if (topo->cpu[c].present && topo->cpu[c].numa < 0 &&
                topo->cpu[c].package == package)
                dt_cpuset_add(&set, c);
        if (!dt_cpuset_count(&set))
            continue;
        fputs("Cpus=", out);
        print_cpus(out, &set);
        print_small(out, "Package", package);
        print_cores(out, topo, &set);
        fputc('\n', out);
    }
}

static void print_numa_id(FILE *out, const dt_topo_t *topo, const char *key,
                          int numa)
{
    if (numa >= 0)
        fprintf(out, " %s=%u", key, topo->numa[numa].id);
}

static void print_under(FILE *out, const dt_topo_t *topo, int bridge)
{
    if (bridge >= 0)
        print_text(out, "Under", topo->switches[bridge].name);
}

static void print_paths(FILE *out, const dt_topo_t *topo, uint32_t device)
{
    fputs(" Paths=", out);
    for (uint32_t i = 0; i < topo->ngpus + topo->nnics; i++) {
        if (i)
            fputc(',', out);
        fputs(i == device ? "X" : dt_path_name((dt_path_t)topo->pci[device][i]),
              out);
    }
}

static void print_links(FILE *out, const dt_topo_t *topo, uint32_t gpu)
{
    bool any = false;
    for (uint32_t i = 0; i < topo->ngpus; i++)
        any = any || topo->links[gpu][i];
    if (!any)
        return;
    fputs(" Links=", out);
    for (uint32_t i = 0; i < topo->ngpus; i++)
        fprintf(out, "%s%d", i ? "," : "",
                i == gpu ? -1 : (int)topo->links[gpu][i]);
}

static void print_pcie(FILE *out, const dt_topo_pcie_t *link)
{
    if (link->generation)
        fprintf(out, " Pcie=%ux%u", link->generation, link->lanes);
}

static void print_gpu(FILE *out, const dt_topo_t *topo, uint32_t i)
{
    static const char *const vendors[] = {"", "nvidia", "amd", "intel"};
    const dt_topo_gpu_t *gpu = &topo->gpu[i];
    fprintf(out, "Gpu=%u", i);
    print_text(out, "Bus", gpu->bus);
    print_text(out, "Vendor", vendors[gpu->vendor]);
    print_text(out, "Name", gpu->name);
    print_text(out, "Uuid", gpu->uuid);
    print_text(out, "File", gpu->file);
    print_small(out, "Minor", gpu->minor_number);
    print_small(out, "Part", gpu->part);
    print_pcie(out, &gpu->pcie);
    print_numa_id(out, topo, "Numa", gpu->numa);
    print_numa_id(out, topo, "MemoryNuma", gpu->memory_numa);
    print_small(out, "Package", gpu->package);
    if (dt_cpuset_count(&gpu->cpus) &&
        (gpu->numa < 0 ||
         !dt_cpuset_equal(&gpu->cpus, &topo->numa[gpu->numa].cpus))) {
        fputs(" Cpus=", out);
        print_cpus(out, &gpu->cpus);
    }
    print_under(out, topo, gpu->under);
    print_bytes(out, gpu->memory);
    fputs(gpu->nvswitch ? " NvSwitch=yes" : "", out);
    fputs(gpu->lost ? " Lost=yes" : "", out);
    print_links(out, topo, i);
    print_paths(out, topo, i);
    fputc('\n', out);
}

static void print_nic(FILE *out, const dt_topo_t *topo, uint32_t i)
{
    static const char *const types[] = {"",    "ib",        "roce",
                                        "efa", "slingshot", "ethernet"};
    static const char *const states[] = {"", "up", "down"};
    const dt_topo_nic_t *nic = &topo->nic[i];
    fputs("Nic=", out);
    print_value(out, nic->name);
    print_text(out, "Names", nic->names);
    print_text(out, "Net", nic->net);
    print_text(out, "Bus", nic->bus);
    print_text(out, "Type", types[nic->type]);
    print_text(out, "State", states[nic->state]);
    if (nic->port > 0)
        print_small(out, "Port", nic->port);
    if (nic->gbps)
        fprintf(out, " Gbps=%u", nic->gbps);
    print_pcie(out, &nic->pcie);
    print_numa_id(out, topo, "Numa", nic->numa);
    print_small(out, "Package", nic->package);
    print_under(out, topo, nic->under);
    print_paths(out, topo, topo->ngpus + i);
    fputc('\n', out);
}

char *dt_topo_print(const dt_topo_t *topo)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fputs("DtTopology=1", out);
    print_text(out, "Source", topo->source);
    print_text(out, "Missing", topo->missing);
    print_text(out, "NcclFile", topo->nccl_file);
    fputc('\n', out);
    for (uint32_t i = 0; i < topo->nnumas; i++)
        print_numa(out, topo, i);
    print_rest(out, topo);
    for (uint32_t i = 0; i < topo->nswitches; i++) {
        const dt_topo_switch_t *bridge = &topo->switches[i];
        fputs("Switch=", out);
        print_value(out, bridge->name);
        print_under(out, topo, bridge->parent);
        print_numa_id(out, topo, "Numa", bridge->numa);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < topo->ngpus; i++)
        print_gpu(out, topo, i);
    for (uint32_t i = 0; i < topo->nnics; i++)
        print_nic(out, topo, i);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
