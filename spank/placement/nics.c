/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nics.c - names of NICs. */
#include "placement/nics.h"

#include <stdio.h>
#include <string.h>

/* true if name is one of names, which are joined by '/' */
static bool is_one_of(const char *names, const char *name)
{
    for (;;) {
        size_t length = strcspn(names, "/");
        if (length && strlen(name) == length && !memcmp(names, name, length))
            return true;
        if (!names[length])
            return false;
        names += length + 1;
    }
}

int dt_nics_find(const dt_topo_t *topo, const char *name)
{
    for (uint32_t i = 0; i < topo->nnics; i++) {
        const dt_topo_nic_t *nic = &topo->nic[i];
        if (*name && (!strcmp(nic->name, name) || !strcmp(nic->net, name) ||
                      !strcmp(nic->bus, name) || is_one_of(nic->names, name)))
            return (int)i;
    }
    return -1;
}

/* What UCX and NCCL call by the name of a verbs device. EFA has one, but NCCL
 * and UCX reach it by other means; Slingshot has none. */
static bool has_verbs(const dt_topo_nic_t *nic)
{
    static const char *const drivers[] = {"mlx", "bnxt_re", "irdma",
                                          "ib",  "rocep",   "hns"};
    if (nic->type == DT_NIC_IB || nic->type == DT_NIC_ROCE)
        return strcmp(nic->name, nic->net) != 0 &&
               strcmp(nic->name, nic->bus) != 0;
    if (nic->type != DT_NIC_UNKNOWN || !strcmp(nic->name, nic->net))
        return false;
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
        if (!strncmp(nic->name, drivers[i], strlen(drivers[i])))
            return true;
    return false;
}

void dt_nics_names(const dt_topo_t *topo, const uint8_t *nic, size_t n,
                   char text[DT_NICS_TEXT])
{
    char *at = text;
    *at = '\0';
    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "%s%.31s", at > text ? "," : "",
                      topo->nic[nic[i]].name);
}

void dt_nics_verbs(const dt_topo_t *topo, const uint8_t *nic, size_t n,
                   char text[DT_NICS_TEXT])
{
    char *at = text;
    *at = '\0';
    for (size_t i = 0; i < n; i++) {
        const dt_topo_nic_t *one = &topo->nic[nic[i]];
        if (has_verbs(one))
            at += sprintf(at, "%s%.31s:%d", at > text ? "," : "", one->name,
                          one->port > 0 ? one->port : 1);
    }
}
