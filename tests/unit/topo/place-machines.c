/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place-machines.c - machines whose right placement is known. */
#include "place-machines.h"

#include <stdlib.h>

#include "../tap.h"

dt_topo_t *machine(size_t ngpus, size_t nnumas, size_t ncores)
{
    dt_topo_t *topo = dt_topo_create();
    if (!topo)
        abort();
    for (size_t i = 0; i < nnumas; i++) {
        dt_topo_numa_t *numa = dt_topo_add_numa(topo, NULL);
        numa->id = (uint32_t)i;
        numa->package = (int16_t)(i * 2 / nnumas);
        for (size_t c = i * ncores; c < (i + 1) * ncores; c++) {
            dt_cpuset_add(&numa->cpus, c);
            dt_cpuset_add(&numa->cpus, c + nnumas * ncores);
        }
    }
    for (size_t i = 0; i < ngpus; i++) {
        dt_topo_gpu_t *gpu = dt_topo_add_gpu(topo, NULL);
        snprintf(gpu->bus, sizeof(gpu->bus), "0000:%02x:00.0", (unsigned)i + 1);
        gpu->numa = nnumas ? (int16_t)(i * nnumas / ngpus) : -1;
    }
    return topo;
}

void add_nic(dt_topo_t *topo, int numa, dt_nic_type_t type)
{
    dt_topo_nic_t *nic = dt_topo_add_nic(topo, NULL);
    snprintf(nic->bus, sizeof(nic->bus), "0000:%02x:00.0", 0x80 + topo->nnics);
    nic->numa = (int16_t)numa;
    nic->type = type;
    nic->state = DT_LINK_UP;
}

void path(dt_topo_t *topo, size_t a, size_t b, dt_path_t class)
{
    topo->pci[a][b] = topo->pci[b][a] = (uint8_t) class;
}

void link_all(dt_topo_t *topo, size_t from, size_t to, uint16_t n)
{
    for (size_t a = from; a < to; a++)
        for (size_t b = from; b < to; b++)
            topo->links[a][b] = a == b ? 0 : n;
}

dt_topo_t *finish(dt_topo_t *topo)
{
    struct dt_error err;
    if (dt_topo_normalize(topo, &err) != DT_SUCCESS) {
        diag("%s", err.text);
        abort();
    }
    return topo;
}

dt_topo_t *hgx(void)
{
    dt_topo_t *topo = machine(8, 2, 56);
    link_all(topo, 0, 8, 18);
    for (size_t i = 0; i < 8; i++)
        add_nic(topo, (int)i / 4, DT_NIC_IB);
    for (size_t i = 0; i < 8; i++)
        path(topo, i, 8 + i, DT_PATH_PIX);
    return finish(topo);
}

dt_topo_t *dgx1(void)
{
    static const uint8_t links[][3] = {
        {0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
        {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
        {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
    dt_topo_t *topo = machine(8, 2, 20);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        topo->links[links[i][0]][links[i][1]] =
            topo->links[links[i][1]][links[i][0]] = links[i][2];
    for (size_t i = 0; i < 4; i++)
        add_nic(topo, (int)i / 2, DT_NIC_IB);
    for (size_t i = 0; i < 8; i++)
        path(topo, i, 8 + i / 2, DT_PATH_PIX);
    return finish(topo);
}

dt_topo_t *dgx2(const uint8_t *order)
{
    dt_topo_t *topo = machine(16, 2, 24);
    link_all(topo, 0, 16, 6);
    for (size_t i = 0; i < 16; i++)
        topo->gpu[order[i]].numa = (int16_t)(i / 8);
    for (size_t a = 0; a < 16; a++)
        for (size_t b = 0; b < 16; b++)
            if (a != b)
                path(topo, order[a], order[b],
                     a / 2 == b / 2   ? DT_PATH_PIX
                     : a / 4 == b / 4 ? DT_PATH_PXB
                     : a / 8 == b / 8 ? DT_PATH_NODE
                                      : DT_PATH_SYS);
    return finish(topo);
}

dt_topo_t *pcie(void)
{
    dt_topo_t *topo = machine(4, 1, 8);
    path(topo, 0, 2, DT_PATH_PIX);
    path(topo, 1, 3, DT_PATH_PIX);
    return finish(topo);
}
