/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* score.c - how near devices are to each other, and how good a set of GPUs
 * is. */
#include "topo/model/score.h"

dt_path_t dt_topo_path(const dt_topo_t *topo, size_t a, size_t b)
{
    size_t n = (size_t)topo->ngpus + topo->nnics;
    if (a >= n || b >= n)
        return DT_PATH_UNKNOWN;
    if (a == b || (a < topo->ngpus && b < topo->ngpus && topo->links[a][b]))
        return DT_PATH_NVL;
    uint8_t path = topo->pci[a][b];
    return path < DT_PATH_UNKNOWN ? (dt_path_t)path : DT_PATH_UNKNOWN;
}

const char *dt_path_name(dt_path_t path)
{
    switch (path) {
    case DT_PATH_NVL:
        return "NVL";
    case DT_PATH_PIX:
        return "PIX";
    case DT_PATH_PXB:
        return "PXB";
    case DT_PATH_PHB:
        return "PHB";
    case DT_PATH_NODE:
        return "NODE";
    case DT_PATH_SYS:
        return "SYS";
    case DT_PATH_UNKNOWN:
        break;
    }
    return "?";
}

uint32_t dt_score_pci(const dt_topo_t *topo, size_t a, size_t b)
{
    uint8_t path = topo->pci[a][b];
    return path < DT_PATH_SYS ? path : DT_PATH_SYS;
}

int64_t dt_score_pair(const dt_topo_t *topo, size_t a, size_t b)
{
    uint32_t pci = dt_score_pci(topo, a, b);
    int package = topo->gpu[a].package;
    bool far =
        pci == DT_PATH_SYS && (package < 0 || package != topo->gpu[b].package);
    return topo->links[a][b] * DT_SCORE_LINK - pci * DT_SCORE_PCI -
           far * DT_SCORE_FAR;
}

bool dt_same_locality(const dt_topo_t *topo, size_t a, size_t b)
{
    static const dt_cpuset_t unknown;
    const dt_topo_gpu_t *x = &topo->gpu[a], *y = &topo->gpu[b];
    return dt_cpuset_equal(&x->cpus, &y->cpus) &&
           (!dt_cpuset_equal(&x->cpus, &unknown) || x->numa == y->numa);
}

dt_place_score_t dt_place_score(const dt_topo_t *topo, const uint8_t *gpu,
                                size_t n)
{
    dt_place_score_t score = {0};
    for (size_t i = 0; i < n; i++) {
        bool new_locality = true;
        for (size_t j = 0; j < i; j++) {
            score.links += topo->links[gpu[i]][gpu[j]];
            score.pci += dt_score_pci(topo, gpu[i], gpu[j]);
            new_locality =
                new_locality && !dt_same_locality(topo, gpu[i], gpu[j]);
        }
        score.numas += new_locality;
    }
    return score;
}

int dt_place_compare(const dt_place_score_t *a, const dt_place_score_t *b)
{
    if (a->links != b->links)
        return a->links < b->links ? -1 : 1;
    if (a->pci != b->pci)
        return a->pci > b->pci ? -1 : 1;
    return (a->numas < b->numas) - (a->numas > b->numas);
}
