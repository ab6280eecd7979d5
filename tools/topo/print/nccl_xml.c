/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_xml.c - the machine as a topology file for NCCL.
 *
 * NCCL adds what it can see to what the file says, and never changes that. So
 * the speeds of devices, their names and ports are left to it; a switch in the
 * file is not looked at, and has to have all attributes. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "outline.h"
#include "print.h"

#define CLASS_NVSWITCH   "0x068000"
#define CLASS_NVIDIA     "0x030200"
#define CLASS_AMD        "0x038000"
#define CLASS_INFINIBAND "0x020700"
#define CLASS_ETHERNET   "0x020000"
/* the speed is not known: NCCL takes one for all */
#define BRIDGE " class=\"0x060400\" link_speed=\"\" link_width=\"0\">\n"
/* what NCCL itself writes for a switch that it knows no bus id of */
#define ANY_NVSWITCH "fffffff:ffff:ff"

struct xml {
    FILE *out;
    const dt_topo_t *topo;
    const struct outline *outline;
};

static void indent(const struct xml *xml, int depth)
{
    fprintf(xml->out, "%*s", 2 * depth, "");
}

/* ---- CPUs: their kind is that of the machine this runs on ---- */

/* A value of /proc/cpuinfo, "" if it is not there. */
static void cpuinfo(const char *key, char *value, size_t size)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    value[0] = '\0';
    while (file && fgets(line, sizeof(line), file)) {
        char *colon = strchr(line, ':');
        size_t len = strlen(key);
        if (!colon || strncmp(line, key, len) || !strchr(" \t:", line[len]))
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(value, size, "%s", colon);
        break;
    }
    if (file)
        fclose(file);
}

static void print_cpu_kind(const struct xml *xml)
{
    struct utsname system;
    char vendor[64], family[16], model[16];
    if (uname(&system))
        return;
    if (strcmp(system.machine, "x86_64")) {
        fprintf(xml->out, " arch=\"%s\"",
                !strcmp(system.machine, "aarch64") ? "arm64" : "ppc64");
        return;
    }
    cpuinfo("vendor_id", vendor, sizeof(vendor));
    cpuinfo("cpu family", family, sizeof(family));
    cpuinfo("model", model, sizeof(model));
    fputs(" arch=\"x86_64\" vendor=\"", xml->out);
    xml_text(xml->out, vendor);
    fprintf(xml->out, "\" familyid=\"%d\" modelid=\"%d\"", atoi(family),
            atoi(model));
}

/* ff,ffffffff,00000000: words of 32 CPUs, the highest first */
static void print_affinity(const struct xml *xml, const dt_cpuset_t *set)
{
    size_t word = DT_TOPO_MAX_CPUS / 32;
    while (word > 1 &&
           !(uint32_t)(set->word[(word - 1) / 2] >> (word - 1) % 2 * 32))
        word--;
    fputs(" affinity=\"", xml->out);
    while (word-- > 0)
        fprintf(xml->out, "%08x%s",
                (uint32_t)(set->word[word / 2] >> word % 2 * 32),
                word ? "," : "\"");
}

/* ---- devices ---- */

static void print_links(const struct xml *xml, uint32_t i, int depth)
{
    const dt_topo_t *topo = xml->topo;
    const dt_topo_gpu_t *gpu = &topo->gpu[i];
    bool amd = gpu->vendor == DT_VENDOR_AMD;
    unsigned most = 0;
    for (uint32_t j = 0; j < topo->ngpus; j++) {
        unsigned links = topo->links[i][j];
        most = links > most ? links : most;
        if (j == i || !links || gpu->nvswitch)
            continue;
        indent(xml, depth);
        fprintf(xml->out, "<%s target=\"", amd ? "xgmi" : "nvlink");
        xml_text(xml->out, topo->gpu[j].bus);
        fprintf(xml->out, "\" count=\"%u\" tclass=\"%s\"/>\n", links,
                amd ? CLASS_AMD : CLASS_NVIDIA);
    }
    if (gpu->nvswitch && most) {
        indent(xml, depth);
        fprintf(xml->out,
                "<nvlink target=\"" ANY_NVSWITCH "\" count=\"%u\" "
                "tclass=\"" CLASS_NVSWITCH "\"/>\n",
                most);
    }
}

static void print_gpu(const struct xml *xml, int i, int depth)
{
    const dt_topo_gpu_t *gpu = &xml->topo->gpu[i];
    if (i > 0 && gpu->part >= 0 && !strcmp(gpu->bus, xml->topo->gpu[i - 1].bus))
        return; /* another partition of the same function */
    indent(xml, depth);
    fputs("<pci busid=\"", xml->out);
    xml_text(xml->out, gpu->bus);
    fprintf(xml->out, "\" class=\"%s\">\n",
            gpu->vendor == DT_VENDOR_AMD ? CLASS_AMD : CLASS_NVIDIA);
    indent(xml, depth + 1);
    fprintf(xml->out, "<gpu dev=\"%d\">\n", i);
    print_links(xml, (uint32_t)i, depth + 2);
    indent(xml, depth + 1);
    fputs("</gpu>\n", xml->out);
    indent(xml, depth);
    fputs("</pci>\n", xml->out);
}

static void print_nic(const struct xml *xml, int i, int depth)
{
    const dt_topo_nic_t *nic = &xml->topo->nic[i];
    if (!nic->bus[0] || (i > 0 && !strcmp(nic->bus, nic[-1].bus)))
        return;
    indent(xml, depth);
    fputs("<pci busid=\"", xml->out);
    xml_text(xml->out, nic->bus);
    fprintf(xml->out, "\" class=\"%s\"/>\n",
            nic->type == DT_NIC_IB ? CLASS_INFINIBAND : CLASS_ETHERNET);
}

/* ---- the tree ---- */

static bool is_bus(const char *name)
{
    unsigned domain, bus, device, function;
    int end = 0;
    return sscanf(name, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function,
                  &end) == 4 &&
           !name[end];
}

static void print_devices(const struct xml *xml, int parent, int depth);

static void print_switch(const struct xml *xml, int item, int depth)
{
    int i = xml->outline->item[item].index;
    const dt_topo_switch_t *bridge = &xml->topo->switches[i];
    /* a host bridge is the CPU itself */
    if (outline_is_host(xml->outline, xml->topo, item)) {
        print_devices(xml, item, depth);
        return;
    }
    indent(xml, depth);
    if (is_bus(bridge->name))
        fprintf(xml->out, "<pci busid=\"%s\"", bridge->name);
    else
        fprintf(xml->out, "<pci busid=\"ffff:ff:%02x.%d\"", i / 8, i % 8);
    fputs(BRIDGE, xml->out);
    print_devices(xml, item, depth + 1);
    indent(xml, depth);
    fputs("</pci>\n", xml->out);
}

/* Two devices of one switch whose path has several switches: add one. */
static bool needs_switch(const struct xml *xml, int item)
{
    const struct outline *outline = xml->outline;
    int a = outline_device(outline, xml->topo, item);
    int parent = outline->item[item].parent;
    for (int i = outline_child(outline, parent, -1); i >= 0;
         i = outline_child(outline, parent, i)) {
        int b = outline_device(outline, xml->topo, i);
        if (b >= 0 && b != a && xml->topo->pci[a][b] == DT_PATH_PXB)
            return true;
    }
    return false;
}

static void print_device(const struct xml *xml, int item, int depth)
{
    const struct outline_item *at = &xml->outline->item[item];
    if (at->kind == OUTLINE_GPU)
        print_gpu(xml, at->index, depth);
    else
        print_nic(xml, at->index, depth);
}

static void print_devices(const struct xml *xml, int parent, int depth)
{
    const struct outline *outline = xml->outline;
    for (int i = outline_child(outline, parent, -1); i >= 0;
         i = outline_child(outline, parent, i)) {
        int device = outline_device(outline, xml->topo, i);
        if (device >= 0 && needs_switch(xml, i)) {
            indent(xml, depth);
            fprintf(xml->out, "<pci busid=\"fffe:ff:%02x.%d\"" BRIDGE,
                    device / 8, device % 8);
            print_device(xml, i, depth + 1);
            indent(xml, depth);
            fputs("</pci>\n", xml->out);
        } else if (device >= 0) {
            print_device(xml, i, depth);
        } else if (outline->item[i].kind == OUTLINE_SWITCH) {
            print_switch(xml, i, depth);
        }
    }
}

static void print_cpu(const struct xml *xml, int item, const char *id,
                      const dt_cpuset_t *cpus)
{
    fprintf(xml->out, "  <cpu numaid=\"%s\"", id);
    print_affinity(xml, cpus);
    print_cpu_kind(xml);
    fputs(">\n", xml->out);
    print_devices(xml, item, 2);
    fputs("  </cpu>\n", xml->out);
}

static bool has_devices(const struct outline *outline, int parent)
{
    for (int i = outline_child(outline, parent, -1); i >= 0;
         i = outline_child(outline, parent, i))
        if (outline->item[i].kind >= OUTLINE_SWITCH)
            return true;
    return false;
}

void print_xml(FILE *out, const dt_topo_t *topo)
{
    struct outline outline;
    struct xml xml = {out, topo, &outline};
    dt_cpuset_t online;
    char id[16];
    outline_make(&outline, topo);
    online_cpus(topo, &online);
    fputs("<system version=\"1\">\n", out);
    for (int i = 0; i < outline.n; i++) {
        const struct outline_item *item = &outline.item[i];
        if (item->kind == OUTLINE_NUMA) {
            const dt_topo_numa_t *numa = &topo->numa[item->index];
            snprintf(id, sizeof(id), "%u", numa->id);
            print_cpu(&xml, i, id, &numa->cpus);
        } else if (item->kind == OUTLINE_PACKAGE && has_devices(&outline, i)) {
            print_cpu(&xml, i, "-1", &online);
        }
    }
    if (has_devices(&outline, OUTLINE_MACHINE))
        print_cpu(&xml, OUTLINE_MACHINE, "-1", &online);
    fputs("</system>\n", out);
}
