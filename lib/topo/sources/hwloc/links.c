/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* links.c - NVLink and XGMI from the distance matrices of hwloc. */
#include <stdlib.h>

#include "topo/sources/hwloc/convert.h"

#define SWITCH (-2)

/* The GPU that an object stands for, SWITCH, or -1. */
static int end_of(hwloc_obj_t object)
{
    int gpu = object ? dt_hwloc_gpu(object) : -1;
    bool other = gpu < 0 && object && object->type == HWLOC_OBJ_PCI_DEVICE;
    return other ? SWITCH : gpu;
}

static void add_links(uint16_t *links, uint64_t more)
{
    *links = more > (uint64_t)(UINT16_MAX - *links) ? UINT16_MAX
                                                    : *links + (uint16_t)more;
}

/* The NVSwitches of a node are one fabric: what a GPU has into it, it has to
 * each other GPU there. */
static void join_by_switches(dt_topo_t *topo, const uint16_t *into)
{
    for (uint32_t a = 0; a < topo->ngpus; a++)
        for (uint32_t b = 0; b < topo->ngpus; b++)
            if (a != b && into[a] && into[b]) {
                topo->gpu[a].nvswitch = true;
                add_links(&topo->links[a][b],
                          into[a] < into[b] ? into[a] : into[b]);
            }
}

/* A matrix of bandwidths; per_link is that of one link. */
static void add_matrix(const struct hwloc_distances_s *matrix,
                       uint64_t per_link, dt_topo_t *topo)
{
    uint16_t into[DT_TOPO_MAX_GPUS] = {0};
    size_t n = matrix->nbobjs;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int from = end_of(matrix->objs[i]), to = end_of(matrix->objs[j]);
            uint64_t speed = matrix->values[i * n + j];
            if (from < 0 || to == -1 || from == to || speed == 0)
                continue;
            uint64_t links =
                speed / per_link + (speed % per_link >= per_link / 2);
            add_links(to == SWITCH ? &into[from] : &topo->links[from][to],
                      links ? links : 1);
        }
    join_by_switches(topo, into);
}

void dt_hwloc_links(hwloc_topology_t hwloc, dt_topo_t *topo)
{
    static const struct {
        const char *name;
        uint64_t per_link; /* MB/s */
    } kinds[] = {{"NVLinkBandwidth", 25000}, {"XGMIBandwidth", 50000}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct hwloc_distances_s *matrix = NULL;
        unsigned n = 1;
        if (hwloc_distances_get_by_name(hwloc, kinds[i].name, &n, &matrix, 0) ||
            !matrix)
            continue;
        add_matrix(matrix, kinds[i].per_link, topo);
        hwloc_distances_release(hwloc, matrix);
    }
}
