/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link_list.c - links of GPUs, summed up between pairs. */
#include "topo/sources/link_list.h"

#include <stdio.h>
#include <string.h>

bool dt_link_add(struct dt_link_list *list, uint8_t gpu, const char *target,
                 uint16_t count, bool to_switch)
{
    if (list->n == DT_LINK_MAX)
        return false;
    struct dt_link *link = &list->link[list->n++];
    *link =
        (struct dt_link){.gpu = gpu, .to_switch = to_switch, .count = count};
    char bus[24];
    snprintf(link->target, sizeof(link->target), "%s",
             dt_topo_bus(target, bus) ? bus : target);
    return true;
}

static void add(uint16_t *sum, uint32_t count)
{
    count += *sum;
    *sum = count > UINT16_MAX ? UINT16_MAX : (uint16_t)count;
}

/* Partitions of a GPU share its bus id: each gets the link. */
static bool apply_direct(const struct dt_link *link, dt_topo_t *topo)
{
    bool found = false;
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        if (strcmp(topo->gpu[i].bus, link->target) != 0)
            continue;
        found = true;
        if (i != link->gpu)
            add(&topo->links[link->gpu][i], link->count);
    }
    return found;
}

/* Is there an earlier link to the same switch? */
static bool is_known(const struct dt_link_list *list, size_t at)
{
    const struct dt_link *link = &list->link[at];
    for (size_t i = 0; i < at; i++)
        if (list->link[i].to_switch &&
            strcmp(list->link[i].target, link->target) == 0)
            return true;
    return false;
}

static void apply_switch(const struct dt_link_list *list, size_t first,
                         dt_topo_t *topo)
{
    const char *name = list->link[first].target;
    uint16_t count[DT_TOPO_MAX_GPUS] = {0};
    for (size_t i = first; i < list->n; i++) {
        const struct dt_link *link = &list->link[i];
        if (!link->to_switch || strcmp(link->target, name) != 0)
            continue;
        add(&count[link->gpu], link->count);
        topo->gpu[link->gpu].nvswitch = true;
    }
    for (uint32_t i = 0; i < topo->ngpus; i++)
        for (uint32_t j = 0; j < topo->ngpus; j++)
            if (i != j)
                add(&topo->links[i][j],
                    count[i] < count[j] ? count[i] : count[j]);
}

void dt_link_apply(const struct dt_link_list *list, dt_topo_t *topo)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct dt_link *link = &list->link[i];
        if (!apply_direct(link, topo) && link->to_switch && !is_known(list, i))
            apply_switch(list, i, topo);
    }
}
