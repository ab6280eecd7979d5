/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* phrases.c - short texts for people. */
#include <stdlib.h>
#include <string.h>

#include "print.h"

char *count_text(char text[64], size_t n, const char *noun)
{
    size_t len = strlen(noun);
    bool hiss = len > 1 && (noun[len - 1] == 's' || noun[len - 1] == 'h');
    snprintf(text, 64, "%zu %s%s", n, noun, n == 1 ? "" : hiss ? "es" : "s");
    return text;
}

char *memory_text(char text[32], uint64_t bytes)
{
    uint64_t mib = bytes >> 20;
    text[0] = '\0';
    if (mib >= 1024)
        snprintf(text, 32, "%llu GiB", (unsigned long long)(mib + 512) / 1024);
    else if (bytes)
        snprintf(text, 32, "%llu MiB", (unsigned long long)mib);
    return text;
}

const char *nic_type_text(dt_nic_type_t type)
{
    switch (type) {
    case DT_NIC_IB:
        return "InfiniBand";
    case DT_NIC_ROCE:
        return "RoCE";
    case DT_NIC_EFA:
        return "EFA";
    case DT_NIC_SLINGSHOT:
        return "Slingshot";
    case DT_NIC_ETHERNET:
        return "Ethernet";
    case DT_NIC_UNKNOWN:
        break;
    }
    return "";
}

const char *link_state_text(dt_link_state_t state)
{
    return state == DT_LINK_UP ? "up" : state == DT_LINK_DOWN ? "down" : "";
}

const char *link_text(const dt_topo_t *topo)
{
    return topo->ngpus && topo->gpu[0].vendor == DT_VENDOR_AMD ? "XGMI link"
                                                               : "NVLink";
}

void online_cpus(const dt_topo_t *topo, dt_cpuset_t *set)
{
    memset(set, 0, sizeof(*set));
    for (uint32_t i = 0; i < topo->ncpus; i++)
        if (topo->cpu[i].present)
            dt_cpuset_add(set, i);
}

/* " (NVIDIA H100)" when all GPUs are alike and their name is known */
static const char *gpu_kind(char text[80], const dt_topo_t *topo)
{
    text[0] = '\0';
    for (uint32_t i = 1; i < topo->ngpus; i++)
        if (strcmp(topo->gpu[i].name, topo->gpu[0].name))
            return text;
    if (topo->ngpus && topo->gpu[0].name[0])
        snprintf(text, 80, " (%s)", topo->gpu[0].name);
    return text;
}

char *summary_text(char text[256], const dt_topo_t *topo)
{
    char gpus[64], nics[64], numas[64], cpus[64], kind[80];
    dt_cpuset_t online;
    size_t main_memory = 0;
    for (uint32_t i = 0; i < topo->nnumas; i++)
        main_memory += topo->numa[i].gpu < 0;
    online_cpus(topo, &online);
    snprintf(text, 256, "%s%s, %s, %s, %s",
             count_text(gpus, topo->ngpus, "GPU"), gpu_kind(kind, topo),
             count_text(nics, topo->nnics, "NIC"),
             count_text(numas, main_memory, "NUMA node"),
             count_text(cpus, dt_cpuset_count(&online), "CPU"));
    return text;
}
