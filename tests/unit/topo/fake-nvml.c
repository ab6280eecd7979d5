/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-nvml.c - replaces the driver's libnvidia-ml.so.1 and plays the
 * machine that the variable DT_FAKE_NVML names. With -DFAKE_NVML_OLD it has
 * only the functions without which nothing goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/sources/nvml.h"

#define MAX_GPUS      8
#define NOT_SUPPORTED 3
#define INVALID       2

/* In a GPU's links each character is one link: '0' to '7' to that GPU, 's' to
 * a switch, 'z' to something unknown at bus id 0, 'x' to a GPU that is not
 * there, '?' unknown altogether, '-' inactive. */
struct gpu {
    const char *bus, *links;
    int by_index, by_bus; /* errors */
    unsigned cpus;
    int numa;           /* of its memory, -1 none */
    unsigned mig;       /* 1: MIG mode is on */
    unsigned instances; /* a mask of 8 */
};

struct machine {
    const char *name;
    int init;
    unsigned count; /* as reported */
    bool fabric, absurd;
    unsigned veto; /* P2P status of GPUs 0 and 1 over NVLink */
    struct gpu gpu[MAX_GPUS];
};

#define H100(pci, wires, near)                                                 \
    {                                                                          \
        .bus = pci, .links = wires, .cpus = near, .numa = -1                   \
    }
#define ALL18 "ssssssssssssssssss"

static const struct machine machines[] = {
    {.name = "hgx-h100",
     .count = 8,
     .fabric = true,
     .gpu = {H100("00000000:1B:00.0", ALL18, 0x0f),
             H100("00000000:43:00.0", ALL18, 0x0f),
             H100("00000000:52:00.0", ALL18, 0x0f),
             H100("00000000:61:00.0", "ssssssss-sssssssss", 0x0f),
             H100("00000000:9D:00.0", ALL18, 0xf0),
             H100("00000000:C3:00.0", ALL18, 0xf0),
             H100("00000000:D1:00.0", "??????????????????", 0xf0),
             H100("00000000:DF:00.0", ALL18, 0xf0)}},
    {.name = "dgx-1v",
     .count = 8,
     .gpu = {H100("00000000:06:00.0", "123344", 0x0f),
             H100("00000000:07:00.0", "022355", 0x0f),
             H100("00000000:0A:00.0", "011336", 0x0f),
             H100("00000000:0B:00.0", "001227", 0x0f),
             H100("00000000:85:00.0", "005677", 0xf0),
             H100("00000000:86:00.0", "114667", 0xf0),
             H100("00000000:89:00.0", "245577", 0xf0),
             H100("00000000:8A:00.0", "344566", 0xf0)}},
    {.name = "lost", /* each answers in another way */
     .count = 2,
     .gpu = {H100("00000000:06:00.0", "", 0x0f),
             {.bus = "00000000:07:00.0", .by_index = 15, .by_bus = 15}}},
    {.name = "lost-unknown",
     .count = 2,
     .gpu = {{.bus = "00000000:06:00.0", .by_index = 999, .by_bus = 6},
             H100("00000000:07:00.0", "", 0x0f)}},
    {.name = "lost-by-bus", /* only that finds the second one */
     .count = 1,
     .gpu = {H100("00000000:06:00.0", "", 0x0f),
             H100("00000000:07:00.0", "", 0x0f)}},
    {.name = "hidden",
     .count = 2,
     .gpu = {{.bus = "00000000:06:00.0", .by_index = 4, .by_bus = 4},
             H100("00000000:07:00.0", "", 0x0f)}},
    {.name = "vm", /* it sees neither switches nor the PCI tree */
     .count = 2,
     .gpu = {H100("00000000:00:05.0", "zzzz?x", 0x0f),
             H100("00000000:00:06.0", "zzzzzz", 0xffffffff)}},
    {.name = "veto",
     .count = 3,
     .veto = 5,
     .gpu = {H100("00000000:06:00.0", "ssss", 0x0f),
             H100("00000000:07:00.0", "ssss", 0x0f),
             H100("00000000:0A:00.0", "ssss", 0x0f)}},
    {.name = "grace",
     .count = 2,
     .gpu = {{.bus = "00000009:01:00.0", .links = "", .numa = 2},
             {.bus = "00000019:01:00.0", .links = "", .numa = 1}}},
    {.name = "mig",
     .count = 3,
     .gpu = {H100("00000000:06:00.0", "12", 0x0f),
             {.bus = "00000000:07:00.0",
              .links = "0",
              .numa = -1,
              .mig = 1,
              .instances = 0x25},
             {.bus = "00000000:0A:00.0", .links = "0", .numa = -1, .mig = 1}}},
    {.name = "absurd",
     .count = 1000,
     .absurd = true,
     .gpu = {H100("00000000:06:00.0", "000xx?zzs1", ~0U),
             H100("00000000:07:00.000000000000000000000", "0", 0),
             H100("00000000:06:00.0",
                  "0123456701234567012345670123456701234567"
                  "012345670123456701234567",
                  0)}},
    {.name = "crowd", /* of MIG instances */
     .count = 2,
     .absurd = true,
     .gpu = {H100("00000000:06:00.0", "", 0x0f),
             {.bus = "00000000:07:00.0", .links = "", .mig = 1}}},
    {.name = "no-driver", .init = 9},
    {.name = "mismatch", .init = 18},
    {.name = "odd", .init = 77},
};

/* A handle points to one: a GPU, or an instance of one from 1 on. */
struct device {
    unsigned gpu, instance;
};

static const struct machine *machine;
static struct device devices[MAX_GPUS][9];
int fake_nvml_running; /* nvmlInit less nvmlShutdown */

int nvmlInit_v2(void)
{
    const char *name = getenv("DT_FAKE_NVML");
    machine = NULL;
    if (name && !strcmp(name, "hang"))
        pause();
    if (name && !strcmp(name, "crash"))
        abort();
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
        if (name && strcmp(machines[i].name, name) == 0)
            machine = &machines[i];
    if (!machine)
        return 999;
    for (unsigned i = 0; i < MAX_GPUS; i++)
        for (unsigned j = 0; j < 9; j++)
            devices[i][j] = (struct device){i, j};
    fake_nvml_running += machine->init == 0;
    return machine->init;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = machine->count;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device)
{
    if (i >= MAX_GPUS || !machine->gpu[i].bus)
        return INVALID;
    *device = &devices[i][0];
    return machine->gpu[i].by_index;
}

static const struct gpu *gpu_of(const void *device)
{
    return &machine->gpu[((const struct device *)device)->gpu];
}

static void set_pci(struct dt_nvml_pci *pci, const char *bus)
{
    size_t len = strnlen(bus, sizeof(pci->text));
    memset(pci, 0, sizeof(*pci));
    memcpy(pci->text, bus, len); /* without a NUL if it fills it */
    sscanf(bus, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
}

int nvmlDeviceGetPciInfo_v3(void *device, struct dt_nvml_pci *pci)
{
    set_pci(pci, gpu_of(device)->bus);
    return 0;
}

#ifndef FAKE_NVML_OLD
int nvmlShutdown(void)
{
    fake_nvml_running--;
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    unsigned asked[3] = {0}, there[3] = {0};
    sscanf(bus, "%x:%x:%x", &asked[0], &asked[1], &asked[2]);
    for (unsigned i = 0; i < MAX_GPUS && machine->gpu[i].bus; i++) {
        sscanf(machine->gpu[i].bus, "%x:%x:%x", &there[0], &there[1],
               &there[2]);
        if (memcmp(asked, there, sizeof(asked)) != 0)
            continue;
        *device = &devices[i][0];
        return machine->gpu[i].by_bus;
    }
    return DT_NVML_NOT_FOUND;
}

static int put(char *text, unsigned size, const char *value)
{
    if (machine->absurd)
        memset(text, '"', size);
    else if (snprintf(text, size, "%s", value) >= (int)size)
        return 7;
    return 0;
}

int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    const struct device *d = device;
    return put(text, size,
               d->instance ? "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
                           : "NVIDIA H100 80GB HBM3");
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    const struct device *d = device;
    char value[96];
    snprintf(value, sizeof(value), "%s-%08x-0000-0000-0000-%012x",
             d->instance ? "MIG" : "GPU", d->gpu, d->instance);
    return put(text, size, value);
}

int nvmlDeviceGetMinorNumber(void *device, unsigned *number)
{
    const struct device *d = device;
    *number = machine->absurd ? 4000000000U : d->gpu;
    return d->instance ? INVALID : 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct dt_nvml_memory *memory)
{
    const struct device *d = device;
    memory->total = (d->instance ? 10ULL : 80ULL) << 30;
    memory->free = memory->used = 0;
    return 0;
}

int nvmlDeviceGetNumaNodeId(void *device, unsigned *id)
{
    int numa = gpu_of(device)->numa;
    *id = (unsigned)numa;
    return numa < 0 && !machine->absurd ? NOT_SUPPORTED : 0;
}

int nvmlDeviceGetCpuAffinity(void *device, unsigned nwords, unsigned long *mask)
{
    memset(mask, machine->absurd ? 0xff : 0, nwords * sizeof(*mask));
    mask[0] = gpu_of(device)->cpus;
    return 0;
}

/* four GPUs to a processor, as two pairs */
int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, unsigned *level)
{
    unsigned i = ((struct device *)a)->gpu, j = ((struct device *)b)->gpu;
    *level = machine->absurd  ? 77
             : i / 2 == j / 2 ? DT_NVML_SINGLE
             : i / 4 == j / 4 ? DT_NVML_NODE
                              : DT_NVML_SYSTEM;
    return 0;
}

int nvmlDeviceGetP2PStatus(void *a, void *b, int way, unsigned *status)
{
    unsigned i = ((struct device *)a)->gpu, j = ((struct device *)b)->gpu;
    if (way != DT_NVML_P2P_NVLINK)
        return INVALID;
    *status = i + j == 1 ? machine->veto : DT_NVML_P2P_UNKNOWN;
    return 0;
}

/* ' ' if there is no such link */
static char end_of(const void *device, unsigned link)
{
    const char *links = gpu_of(device)->links;
    return link < strlen(links) ? links[link] : ' ';
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active)
{
    char end = end_of(device, link);
    if (end == ' ')
        return INVALID;
    *active = end != '-';
    return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link,
                                        struct dt_nvml_pci *pci)
{
    char end = end_of(device, link);
    if (end == ' ' || end == '?')
        return NOT_SUPPORTED;
    if (end >= '0' && end <= '7')
        set_pci(pci, machine->gpu[end - '0'].bus ?: "nowhere");
    else
        set_pci(pci, end == 's'   ? "00000000:05:00.0"
                     : end == 'z' ? "00000000:00:00.0"
                                  : "00000000:77:00.0");
    return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link,
                                        unsigned *type)
{
    char end = end_of(device, link);
    if (end == ' ')
        return INVALID;
    *type = end == 's'                 ? DT_NVML_REMOTE_SWITCH
            : end == 'z' || end == '?' ? DT_NVML_REMOTE_UNKNOWN
                                       : DT_NVML_REMOTE_GPU;
    return 0;
}

int nvmlDeviceGetGpuFabricInfoV(void *device, struct dt_nvml_fabric *fabric)
{
    (void)device;
    if (fabric->version != (36 | 2U << 24))
        return 25;
    fabric->state = machine->fabric ? DT_NVML_FABRIC_COMPLETED : 0;
    fabric->status = 0;
    return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *current = *pending = gpu_of(device)->mig;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *n)
{
    *n = !gpu_of(device)->mig ? 0 : machine->absurd ? 4000000000U : 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned i,
                                        void **instance)
{
    const struct device *d = device;
    if (!machine->absurd && (i >= 7 || !(gpu_of(device)->instances >> i & 1)))
        return DT_NVML_NOT_FOUND;
    *instance = &devices[d->gpu][i % 8 + 1];
    return 0;
}
#endif
