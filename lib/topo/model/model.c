/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* model.c - a topology, from the pieces a source adds. */
#include "topo/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dt_topo_t *dt_topo_create(void)
{
    dt_topo_t *topo = calloc(1, sizeof(*topo));
    if (!topo)
        return NULL;
    memset(topo->pci, DT_PATH_UNKNOWN, sizeof(topo->pci));
    for (size_t i = 0; i < DT_TOPO_MAX_CPUS; i++)
        topo->cpu[i] =
            (dt_topo_cpu_t){.core = DT_TOPO_NO_CORE, .numa = -1, .package = -1};
    return topo;
}

void dt_topo_destroy(dt_topo_t *topo)
{
    free(topo);
}

static dt_result_t full(const char *what, int limit, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_UNSUPPORTED, "more than %d %s in one node",
                        limit, what);
}

dt_topo_gpu_t *dt_topo_add_gpu(dt_topo_t *topo, struct dt_error *err)
{
    if (topo->ngpus == DT_TOPO_MAX_GPUS) {
        full("GPUs", DT_TOPO_MAX_GPUS, err);
        return NULL;
    }
    dt_topo_gpu_t *gpu = &topo->gpu[topo->ngpus++];
    *gpu = (dt_topo_gpu_t){.part = -1,
                           .minor_number = -1,
                           .numa = -1,
                           .memory_numa = -1,
                           .package = -1,
                           .under = -1};
    return gpu;
}

dt_topo_nic_t *dt_topo_add_nic(dt_topo_t *topo, struct dt_error *err)
{
    if (topo->nnics == DT_TOPO_MAX_NICS) {
        full("NICs", DT_TOPO_MAX_NICS, err);
        return NULL;
    }
    dt_topo_nic_t *nic = &topo->nic[topo->nnics++];
    *nic = (dt_topo_nic_t){.numa = -1, .package = -1, .under = -1};
    return nic;
}

dt_topo_numa_t *dt_topo_add_numa(dt_topo_t *topo, struct dt_error *err)
{
    if (topo->nnumas == DT_TOPO_MAX_NUMAS) {
        full("NUMA nodes", DT_TOPO_MAX_NUMAS, err);
        return NULL;
    }
    dt_topo_numa_t *numa = &topo->numa[topo->nnumas++];
    *numa = (dt_topo_numa_t){.package = -1, .gpu = -1};
    return numa;
}

dt_topo_switch_t *dt_topo_add_switch(dt_topo_t *topo, struct dt_error *err)
{
    if (topo->nswitches == DT_TOPO_MAX_SWITCHES) {
        full("PCIe switches", DT_TOPO_MAX_SWITCHES, err);
        return NULL;
    }
    dt_topo_switch_t *bridge = &topo->switches[topo->nswitches++];
    *bridge = (dt_topo_switch_t){.parent = -1, .numa = -1};
    return bridge;
}

int dt_topo_find_numa(const dt_topo_t *topo, uint32_t id)
{
    for (uint32_t i = 0; i < topo->nnumas; i++)
        if (topo->numa[i].id == id)
            return (int)i;
    return -1;
}

/* Up to max hexadecimal digits; NULL if there is none. */
static const char *hex(const char *at, size_t max, uint32_t *value)
{
    size_t n = 0;
    for (*value = 0; n < max; n++, at++) {
        char c = *at;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            break;
        *value = *value << 4 | (uint32_t)digit;
    }
    return n ? at : NULL;
}

/* domain, bus, device, function */
static bool parse_bus(const char *text, uint32_t part[4])
{
    const char *at = hex(text, 8, &part[0]);
    if (!at || *at != ':')
        return false;
    const char *next = hex(at + 1, 2, &part[1]);
    if (!next)
        return false;
    if (*next == ':') {
        at = next;
        next = hex(at + 1, 2, &part[2]);
    } else { /* no domain */
        part[2] = part[1];
        part[1] = part[0];
        part[0] = 0;
    }
    part[3] = 0;
    if (next && *next == '.')
        next = hex(next + 1, 1, &part[3]);
    return next && !*next && part[1] < 256 && part[2] < 32 && part[3] < 8;
}

bool dt_topo_bus(const char *text, char bus[24])
{
    uint32_t part[4];
    bus[0] = '\0';
    if (!text || !parse_bus(text, part))
        return false;
    snprintf(bus, 24, "%04x:%02x:%02x.%x", part[0], part[1], part[2], part[3]);
    return true;
}

void dt_topo_text(char *field, size_t size, const char *text)
{
    size_t n = 0;
    for (; text && text[n] && n + 1 < size; n++) {
        unsigned char c = (unsigned char)text[n];
        field[n] = c < ' ' || c == 0x7f || c == '"' ? ' ' : (char)c;
    }
    field[n] = '\0';
}

void dt_topo_pcie(dt_topo_pcie_t *link, const char *speed, const char *width)
{
    static const char *const rates[] = {"2.5", "5", "8", "16", "32", "64"};
    size_t n = speed ? strspn(speed, "0123456789.") : 0;
    char *end;
    unsigned long lanes = width ? strtoul(width, &end, 10) : 0;
    if (n > 2 && !strncmp(speed + n - 2, ".0", 2))
        n -= 2;
    *link = (dt_topo_pcie_t){0, 0};
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        if (n == strlen(rates[i]) && !strncmp(speed, rates[i], n) &&
            lanes >= 1 && lanes <= 32)
            *link = (dt_topo_pcie_t){(uint8_t)(i + 1), (uint8_t)lanes};
}
